# SPDX-License-Identifier: Apache-2.0
#
# java: a compiler written in Java (ecj, else the JDK's), whose class files must be the same to the byte, then a program
# with threads, direct buffers and compression.
. "$(dirname "$0")/lib.sh"
need java
unset JAVA_TOOL_OPTIONS _JAVA_OPTIONS
version "$(java -version 2>&1 | awk -F'"' 'NR == 1 { print $2 }')"
ecj=/usr/share/java/ecj.jar
java --list-modules | grep -q '^jdk.compiler@' || [ -f "$ecj" ] || absent "a Java compiler"

compiler() {
  if [ -f "$ecj" ]; then
    run java -cp "$ecj" org.eclipse.jdt.internal.compiler.batch.Main -source 11 -target 11 -nowarn "$@"
  else
    run java --module jdk.compiler/com.sun.tools.javac.Main -nowarn "$@"
  fi
}

work_in_java() {
  mkdir "$work/$turn"
  compiler -d "$work/$turn" "$sources/Churn.java"
  (cd "$work/$turn" && cksum ./*.class)
  run java -Xmx128m -XX:MaxDirectMemorySize=128m -cp "$work/$turn" Churn
}
both java work_in_java
