# SPDX-License-Identifier: Apache-2.0
# Which words follow which, and how often: the length of the list. Reads its files.
my (%count, %after);
my $last = "";
while (<>) {
  for my $word (split) {
    $count{$word}++;
    push @{$after{$last}}, $word;
    $last = $word;
  }
}
my $list = "";
for my $word (sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count) {
  my %seen;
  $seen{$_}++ for @{$after{$word}};
  $list .= join(",", map { "$_=$seen{$_}" } sort keys %seen) . "\n";
}
print length($list), "\n";
