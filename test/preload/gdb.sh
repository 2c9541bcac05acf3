# SPDX-License-Identifier: Apache-2.0
#
# gdb: load a large program's debug information, then debug one: breakpoints, backtraces, values, calls into it, a
# thread, a crash. gdb and the program under it are both served.
. "$(dirname "$0")/lib.sh"
need gdb gcc g++
version "$(gdb --version | awk 'NR == 1 { print $NF }')"
gcc -g -O0 -pthread "$sources/debugged.c" -o "$work/debugged"
g++ -std=c++17 -g -O0 "$sources/templates.cpp" -pthread -o "$work/templates"

cat >"$work/commands" <<'END'
set pagination off
set confirm off
set width 0
set print address off
set startup-with-shell off
set print thread-events off
set print inferior-events off
set debuginfod enabled off
break debugged.c:push if number == 15
run
backtrace
print *head
print head->next->text
print length(head)
finish
delete
break debugged.c:in_thread
continue
up 0
info locals
print length(head)
call (int)strlen(((struct node*)head)->text)
continue
backtrace
print $_siginfo.si_signo
info line debugged.c:main
ptype struct node
python print(sum(len(str(i) * 50) for i in range(20000)))
END
cat >"$work/symbols" <<'END'
set pagination off
set width 0
set debuginfod enabled off
info functions Work
info types Grow
info line main
python print(len(gdb.execute("info scope main", to_string=True)) > 100)
END

# Without what names processes, threads, files of the C library and addresses.
normalized() {
  sed -E 's/\(LWP [0-9]+\)|process [0-9]+|0x[0-9a-f]+|Thread [^ ]+//g
    /^(Using host lib|\[Thread debug|\[New |\[Switching)/d'
}

debug() {
  run gdb -nx -batch -x "$work/symbols" "$work/templates" | normalized
  run gdb -nx -batch -x "$work/commands" "$work/debugged" >"$work/session"
  normalized <"$work/session"
  grep -q 'length 20' "$work/session" || fail "the program did not run to its end"
  grep -q 'SIGSEGV' "$work/session" || fail "gdb did not see the crash"
}
both gdb debug
