finding 1 of 2: assertion failed: locals_of_main: locals_of_main.c:26: main: Assertion `account.balance == 200' failed.

  (1) thread 2 reads `main::account.balance` = 100         locals_of_main.c:12  deposit  no locks
  (2) thread 3 reads `main::account.balance` = 100         locals_of_main.c:12  deposit  no locks
  (3) thread 3 writes `main::account.balance` = 150        locals_of_main.c:13  deposit  no locks
  (4) thread 2 writes `main::account.balance` = 150        locals_of_main.c:13  deposit  no locks
  (5) thread 1 (main) reads `main::account.balance` = 150  locals_of_main.c:26  main     no locks
  (6) thread 1 (main) gives up                             locals_of_main.c:26  main     no locks
      in this order thread 1 (main) gives up at locals_of_main.c:26 main

  locals_of_main.c
   12 │     long old = account->balance;  ◀ (1) (2)
   13 │     account->balance = old + 50;  ◀ (3) (4)
   26 │     assert(account.balance == 200);  ◀ (5) (6)

  thread 3 reads `main::account.balance` before thread 2 writes it at locals_of_main.c:13 deposit; in the run
    that goes well it comes after that
  thread 2 and thread 3 were created at locals_of_main.c:21 main
  confirmed (error), object `main::account.balance`

finding 2 of 2: data race on `main::account.balance` between locals_of_main.c:13 deposit and locals_of_main.c:12 deposit

  (1) thread 2 writes `main::account.balance`  locals_of_main.c:13  deposit  no locks
  (2) thread 3 reads `main::account.balance`   locals_of_main.c:12  deposit  no locks
      no lock, creation, join or atomic operation orders these two accesses

  locals_of_main.c
   12 │     long old = account->balance;  ◀ (2)
   13 │     account->balance = old + 50;  ◀ (1)

  related: `main::account.balance`: writes at locals_of_main.c:13 deposit against writes at
    locals_of_main.c:13 deposit
  confirmed (warning), object `main::account.balance`

