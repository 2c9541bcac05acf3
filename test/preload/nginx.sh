# SPDX-License-Identifier: Apache-2.0
#
# nginx with two workers: 20,000 requests by ab over TCP, then files of all sizes, ranges, compressed pages, listings
# and errors by curl over a unix socket, before and after a reload.
. "$(dirname "$0")/lib.sh"
PATH=$PATH:/usr/sbin
need nginx ab curl
version "$(nginx -v 2>&1 | cut -d/ -f2)"
socket=$work/nginx.sock
mkdir "$work/site" "$work/temp"
# Of root's work folder the workers must read.
if [ "$(id -u)" = 0 ]; then user='user root;'; else user=; fi

awk -v dir="$work/site" 'BEGIN {
  for (file = 0; file < 100; ++file) {
    name = dir "/page" file ".html"
    for (row = 0; row < 1 + file * file / 4; ++row) print file * row % 1009, "<p>some text</p>" > name
    close(name)
    printf "url = \"http://localhost/page%d.html\"\n", file > (dir "/../urls")
    printf "url = \"http://localhost/page%d.html\"\noutput = \"/dev/null\"\n", file > (dir "/../urls.parallel")
  }
}'

configure() { # PORT
  sed -e "s|@user@|$user|" -e "s|@port@|$1|" -e "s|@work@|$work|" "$sources/nginx.conf" >"$work/nginx.conf"
}

ask() { curl -s --unix-socket "$socket" "$@"; }

answers() { [ "$(ask -o /dev/null -w '%{http_code}' http://localhost/page0.html)" = 200 ]; }

ask_for_all() {
  ask --parallel --parallel-max 8 -K "$work/urls.parallel" \
    -w '%{http_code} %{size_download} %{url_effective}\n' 2>/dev/null |
    sort
  ask -K "$work/urls" | cksum
  ask --compressed -K "$work/urls" | cksum
  ask -H 'Accept-Encoding: gzip' http://localhost/page90.html | cksum
  ask -r 100-2000,3000-3010 http://localhost/page50.html | grep -v -a -e '^--' | cksum
  ask http://localhost/list/ | sed 's/ *[0-9]*-[A-Z][a-z]*-[0-9]* [0-9:]*//' | cksum
  for page in 10 50 99; do ask "http://localhost/proxied/page$page.html" | cksum; done
  ask -o /dev/null -w '%{http_code} %{redirect_url}\n' http://localhost/old/place
  ask -w '%{http_code}\n' http://localhost/nowhere | cksum
}

try_port() {
  configure "$1"
  nginx -t -q -e "$work/error.log" -c "$work/nginx.conf" 2>/dev/null
}

free_port() {
  port=$((20000 + $$ % 10000))
  until try_port "$port"; do
    port=$((port + 1))
    [ "$port" -lt 30100 ] || { tail -n 5 "$work/error.log" >&2; fail "no free port"; }
  done
}

benchmark() {
  ab -q -k -n 20000 -c 20 -H 'Accept-Encoding: gzip' "http://127.0.0.1:$port/page40.html" >"$work/ab" 2>&1
  ab -q -n 2000 -c 20 "http://127.0.0.1:$port/proxied/page20.html" >>"$work/ab" 2>&1
}

serve_pages() {
  free_port
  rm -f "$socket"
  serve nginx -e "$work/error.log" -c "$work/nginx.conf"
  wait_until answers
  timed benchmark
  awk '/^(Complete|Failed|Non-2xx|Document Length)/' "$work/ab"
  ask_for_all
  # shellcheck disable=SC2046  # a list of words
  peak_of "$server" $(cat "/proc/$server/task/$server/children")
  # New workers take over; the old ones end.
  kill -HUP "$server"
  ask_for_all
  end_server QUIT
  grep -c '"GET' "$work/access.log"
  rm "$work/access.log"
  if grep -E '\[(alert|emerg|crit)\]' "$work/error.log" >&2; then fail "nginx logged errors"; fi
}
both nginx serve_pages
