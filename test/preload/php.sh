# SPDX-License-Identifier: Apache-2.0
#
# php with pdo, sqlite3, mbstring, xml, curl and intl, modules that it opens with RTLD_DEEPBIND: with php's own memory
# manager, and once more without it, when every value is a block of ours.
. "$(dirname "$0")/lib.sh"
need php
version "$(php -r 'echo PHP_VERSION;')"
for module in pdo_sqlite sqlite3 mbstring dom xml curl intl; do
  php -m | grep -qix "$module" || absent "php's module $module"
done
mkdir "$work/scratch"

work_in_php() {
  rm -f "$work/scratch/"*
  run env "USE_ZEND_ALLOC=$1" php "$sources/churn.php" "$work/scratch"
}
both php work_in_php 1
both php_without_its_manager work_in_php 0
