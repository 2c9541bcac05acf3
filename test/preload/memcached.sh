# SPDX-License-Identifier: Apache-2.0
#
# memcached with four threads: twelve clients at once write, read, append, count and delete values of all sizes, each
# checked when it comes back.
. "$(dirname "$0")/lib.sh"
need memcached python3
version "$(memcached --version | cut -d' ' -f2)"
python=$(program python3)
socket=$work/memcached.sock

answers() { "$python" -c 'import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])' "$socket"; }

serve_memcached() {
  rm -f "$socket"
  serve memcached -s "$socket" -u "$(id -un)" -m 256 -t 4 -c 600 -I 2m
  wait_until answers
  timed "$python" "$sources/memcached.py" "$socket"
  peak_of "$server"
  end_server TERM
}
both memcached serve_memcached
