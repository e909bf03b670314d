finding 1 of 3: wrong output: line 1 is `total 20` instead of `total 42`

  (1) thread 2 reads `total` = 0          wrong_output.c:9  add    no locks
  (2) thread 2 writes `total` = 20        wrong_output.c:9  add    no locks
  (3) thread 2 reads `done` = 0           wrong_output.c:10  add   no locks
  (4) thread 2 writes `done` = 1          wrong_output.c:10  add   no locks
  (5) thread 1 (main) reads `total` = 20  wrong_output.c:19  main  no locks
  (6) thread 3 reads `total` = 20         wrong_output.c:9  add    no locks
  (7) thread 3 writes `total` = 42        wrong_output.c:9  add    no locks
  (8) thread 3 reads `done` = 1           wrong_output.c:10  add   no locks
  (9) thread 3 writes `done` = 2          wrong_output.c:10  add   no locks
      in this order the program writes something else than it should

  wrong_output.c
    9 │     total += (int)(long)argument;  ◀ (1) (2) (6) (7)
   10 │     done++;  ◀ (3) (4) (8) (9)
   19 │     printf("total %d\n", total);  ◀ (5)

  thread 2 was created at wrong_output.c:16 main
  thread 3 was created at wrong_output.c:17 main
  confirmed (error), object `done`

finding 2 of 3: data race on `total` between wrong_output.c:9 add and wrong_output.c:9 add

  (1) thread 2 writes `total`  wrong_output.c:9  add  no locks
  (2) thread 3 reads `total`   wrong_output.c:9  add  no locks
      no lock, creation, join or atomic operation orders these two accesses

  wrong_output.c
    9 │     total += (int)(long)argument;  ◀ (1) (2)

  related: `total`: writes at wrong_output.c:9 add against writes at wrong_output.c:9 add
  related: `total`: writes at wrong_output.c:9 add against reads at wrong_output.c:19 main
  confirmed (warning), object `total`

finding 3 of 3: data race on `done` between wrong_output.c:10 add and wrong_output.c:10 add

  (1) thread 2 writes `done`  wrong_output.c:10  add  no locks
  (2) thread 3 reads `done`   wrong_output.c:10  add  no locks
      no lock, creation, join or atomic operation orders these two accesses

  wrong_output.c
   10 │     done++;  ◀ (1) (2)

  related: `done`: writes at wrong_output.c:10 add against writes at wrong_output.c:10 add
  confirmed (warning), object `done`

