#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# wine.sh PROGRAM [ARGS...]: runs a program for Windows by Wine, as Windows 10, in a prefix below the build folder. Called
# by ctest for every test of the preset windows. The first call makes the prefix, which takes some seconds; the server that
# all programs share stays for a minute, for it takes two to start. It and the services that start with it write to nobody's
# pipe, or who reads there would wait for them.
set -u
build=$(cd "$(dirname "$0")/../.." && pwd)/build
mkdir -p "$build"
WINEPREFIX=${WINEPREFIX:-$build/wine} WINEDEBUG=-all WINEDLLOVERRIDES="winedbg.exe=d;mscoree=d;mshtml=d"
export WINEPREFIX WINEDEBUG WINEDLLOVERRIDES
(
  flock -w 60 9
  {
    if [ ! -f "$WINEPREFIX/is-windows-10" ]; then
      wine wineboot --init && wine winecfg -v win10 && : >"$WINEPREFIX/is-windows-10"
    fi
    ! wineserver -p60 || wine cmd /c exit
  } 9>&-
) </dev/null >/dev/null 2>&1 9>"$build/.wine-lock"
# Wine needs the page at 0x7ffe0000, and a kernel that chooses by chance gives it to Wine's own heap once in some 5,000
# starts: Wine then ends with 1 and no word, before it has opened the program. Some containers do not let us choose.
orderly="setarch -R"
$orderly true 2>/dev/null || orderly=
exec $orderly wine "$@"
