# SPDX-License-Identifier: Apache-2.0
#
# The program that RTLD_DEEPBIND breaks: the distribution's PHP, which loads all of its modules with that flag.
. "$(dirname "$0")/../preload/lib.sh"
need php
if ! php -m | grep -q '^pdo_sqlite$'; then
  [ "${CI:-}" = true ] && fail "php has no module pdo_sqlite"
  echo "skipped: php has no module pdo_sqlite"
  exit 77
fi
cat >"$work/pdo.php" <<'PHP'
<?php
$db = new PDO("sqlite::memory:");
$db->exec("create table t(n integer, s text)");
$insert = $db->prepare("insert into t values(?, ?)");
for ($n = 0; $n < 2000; $n++) $insert->execute([$n, str_repeat(chr(65 + $n % 26), $n % 500)]);
foreach ($db->query("select n % 10 as k, sum(n) as a, sum(length(s)) as b from t group by k order by k") as $row)
  echo $row["k"], " ", $row["a"], " ", $row["b"], "\n";
PHP
both php php "$work/pdo.php"
