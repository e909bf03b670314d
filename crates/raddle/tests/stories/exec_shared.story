finding 1 of 2: exit status 5 instead of 0

  (1) thread 1 (main) reads memory of `shared-count` at 0x.. = 0  exec_shared.c:23  first_adds     no locks
  (2) thread 2 `exe` reads memory of `shared-count` at 0x.. = 0  exec_shared.c:18  executed_adds  no locks
  (3) thread 2 `exe` writes memory of `shared-count` at 0x.. = 1  exec_shared.c:19  executed_adds  no locks
  (4) thread 1 (main) writes memory of `shared-count` at 0x.. = 1  exec_shared.c:24  first_adds     no locks
  (5) thread 1 (main) reads memory of `shared-count` at 0x.. = 1  exec_shared.c:44  main           no locks
      in this order the program ends with status 5; without interruptions it ends with 0

  exec_shared.c
   18 │     long old = shared->count;  ◀ (2)
   19 │     shared->count = old + 1;  ◀ (3)
   23 │     long old = shared->count;  ◀ (1)
   24 │     shared->count = old + 1;  ◀ (4)
   44 │     return shared->count == 2 ? 0 : 5;  ◀ (5)

  thread 2 `exe` reads memory of `shared-count` at 0x.. before thread 1 (main) writes it at
    exec_shared.c:24 first_adds; in the run that goes well it comes after that
  thread 2 `exe` was created at exec_shared.c:37 main
  confirmed (error), object memory of `shared-count` at 0x..

finding 2 of 2: data race on memory of `shared-count` at 0x.. between exec_shared.c:19 executed_adds and exec_shared.c:23 first_adds

  (1) thread 2 `exe` writes memory of `shared-count` at 0x..  exec_shared.c:19  executed_adds  no locks
  (2) thread 1 (main) reads memory of `shared-count` at 0x..  exec_shared.c:23  first_adds     no locks
      no lock, creation, join or atomic operation orders these two accesses

  exec_shared.c
   19 │     shared->count = old + 1;  ◀ (1)
   23 │     long old = shared->count;  ◀ (2)

  related: memory of `shared-count` at 0x..: writes at exec_shared.c:24 first_adds against reads at
    exec_shared.c:18 executed_adds
  related: memory of `shared-count` at 0x..: writes at exec_shared.c:24 first_adds against writes at
    exec_shared.c:19 executed_adds
  confirmed (warning), object memory of `shared-count` at 0x..

