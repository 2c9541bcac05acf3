# SPDX-License-Identifier: Apache-2.0
#
# Work for perl whose output is the same every time; run by perl.sh.
use strict;
use warnings;

my %seen;
my $state = 12345;
sub number { $state = ($state * 1103515245 + 12345) % 2147483648; return $state; }

for my $round (1 .. 8) {
  my @words = map { join '', map { chr(97 + number() % 26) } 1 .. 1 + number() % 40 } 1 .. 8000;
  $seen{$_} .= "$round," for @words;
  my @sorted = sort { length $a <=> length $b || $a cmp $b } keys %seen;
  my $text = join ' ', @sorted;
  my $count = () = $text =~ /\b(\w*?)([aeiou])\w*?\2/g;
  (my $changed = $text) =~ s/([aeiou]+)/<$1>/g;
  printf "%d %d %d %d %s\n", $round, scalar @sorted, $count, length $changed, unpack '%32C*', $changed;
  delete @seen{ grep { number() % 3 == 0 } @sorted };
}

my @tree;
push @{ $tree[ $_ % 97 ] }, { id => $_, list => [ 1 .. $_ % 50 ] } for 1 .. 20000;
my $sum = 0;
for my $bucket (@tree) { $sum += @{ $_->{list} } * $_->{id} for @$bucket; }
print "sum $sum\n";

open my $child, '-|' or do { print join(',', map { $_ * $_ } 1 .. 2000), "\n"; exit 0; };
my $answer = do { local $/; <$child> };
close $child;
print length $answer, "\n";
