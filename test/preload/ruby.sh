# SPDX-License-Identifier: Apache-2.0
#
# ruby: strings, hashes and arrays by several threads, compacting collections, Marshal, JSON, regular expressions, big
# numbers, fibers and a forked child.
. "$(dirname "$0")/lib.sh"
need ruby
ruby=$(program ruby)
version "$("$ruby" -e 'puts RUBY_VERSION')"
both ruby run "$ruby" "$sources/churn.rb"
