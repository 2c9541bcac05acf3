% SPDX-License-Identifier: Apache-2.0
% Lists reversed the slow way, a tree of pairs, and atoms that are made of numbers.
:- initialization(main).
reversed([], []).
reversed([First | Rest], List) :- reversed(Rest, Before), append(Before, [First], List).
main :-
  numlist(1, 300, Numbers),
  ( between(1, 20, _), reversed(Numbers, _), fail ; true ),
  findall(X-Y, (member(X, Numbers), Y is X * 7919 mod 1009), Pairs),
  list_to_assoc(Pairs, Tree),
  assoc_to_values(Tree, Values),
  findall(Atom, (member(Value, Values), format(atom(Atom), "a~w", [Value])), Atoms),
  length(Atoms, Length), write(Length), nl, halt.
