finding 1 of 2: assertion failed: signal_handler: signal_handler.c:28: main: Assertion `events == 2' failed.

  (1) thread 2 reads `events` = 0                signal_handler.c:18  sender     no locks
  (2) thread 1 (main) is interrupted by SIGUSR1  signal_handler.c:12  on_signal  no locks
  (3) thread 1 (main) reads `events` = 0         signal_handler.c:12  on_signal  no locks
  (4) thread 1 (main) writes `events` = 1        signal_handler.c:12  on_signal  no locks
  (5) thread 2 writes `events` = 1               signal_handler.c:18  sender     no locks
  (6) thread 1 (main) reads `events` = 1         signal_handler.c:28  main       no locks
  (7) thread 1 (main) gives up                   signal_handler.c:28  main       no locks
      in this order thread 1 (main) gives up at signal_handler.c:28 main

  signal_handler.c
   12 │     events = events + 1;  ◀ (2) (3) (4)
   18 │     events = events + 1;  ◀ (1) (5)
   28 │     assert(events == 2);  ◀ (6) (7)

  thread 1 (main) reads `events` before thread 2 writes it at signal_handler.c:18 sender; in the run that goes
    well it comes after that
  thread 2 was created at signal_handler.c:26 main
  confirmed (error), object `events`

finding 2 of 2: data race on `events` between signal_handler.c:12 on_signal and signal_handler.c:18 sender

  (1) thread 1 (main) writes `events`  signal_handler.c:12  on_signal  no locks
  (2) thread 2 reads `events`          signal_handler.c:18  sender     no locks
      no lock, creation, join or atomic operation orders these two accesses

  signal_handler.c
   12 │     events = events + 1;  ◀ (1)
   18 │     events = events + 1;  ◀ (2)

  related: `events`: writes at signal_handler.c:18 sender against reads at signal_handler.c:12 on_signal
  related: `events`: writes at signal_handler.c:12 on_signal against writes at signal_handler.c:18 sender
  confirmed (warning), object `events`

