# SPDX-License-Identifier: Apache-2.0
#
# perl: strings, hashes, sorting and regular expressions that come and go, and a forked child; and once more with a heap
# that counts, which takes other paths.
. "$(dirname "$0")/lib.sh"
need perl
version "$(perl -e 'printf "%vd", $^V')"
export PERL_HASH_SEED=0 PERL_PERTURB_KEYS=0
both perl run perl "$sources/churn.pl"
if [ -z "$report" ]; then
  LD_PRELOAD=$library HZ_STATS=1 perl "$sources/churn.pl" >"$work/counted.out" 2>"$work/counted.err"
  same "$work/perl.plain.out" "$work/counted.out"
  grep -q "^hz: stats line=$line " "$work/counted.err" || fail "no statistics line of $line"
fi
