# SPDX-License-Identifier: Apache-2.0
#
# perl: strings, hashes, sorting and regular expressions that come and go, and a forked child.
. "$(dirname "$0")/lib.sh"
need perl
export PERL_HASH_SEED=0 PERL_PERTURB_KEYS=0
both perl perl "$sources/churn.pl"
