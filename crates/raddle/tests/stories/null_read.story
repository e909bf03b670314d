finding 1 of 3: crash: SIGSEGV at null_read.c:15 worker

  (1) thread 2 reads `connection` = 0  null_read.c:15  worker  no locks
  (2) thread 2 crashes                 null_read.c:15  worker  no locks
      thread 2 was killed by SIGSEGV while reading 0x.., in this order

  null_read.c
   15 │     used = connection->descriptor;  ◀ (1) (2)

  thread 2 reads `connection` before thread 1 (main) writes it at null_read.c:25 main; in the run that goes
    well it comes after that
  thread 2 was created at null_read.c:21 main
  confirmed (error), object `connection`

finding 2 of 3: data race on `connection` between null_read.c:25 main and null_read.c:15 worker

  (1) thread 1 (main) writes `connection`  null_read.c:25  main    no locks
  (2) thread 2 reads `connection`          null_read.c:15  worker  no locks
      no lock, creation, join or atomic operation orders these two accesses

  null_read.c
   15 │     used = connection->descriptor;  ◀ (2)
   25 │     connection = fresh;  ◀ (1)

  confirmed (warning), object `connection`

finding 3 of 3: data race on `block(null_read.c:22)+8` between null_read.c:24 main and null_read.c:15 worker

  (1) thread 1 (main) writes `block(null_read.c:22)+8`  null_read.c:24  main    no locks
  (2) thread 2 reads `block(null_read.c:22)+8`          null_read.c:15  worker  no locks
      no lock, creation, join or atomic operation orders these two accesses

  null_read.c
   15 │     used = connection->descriptor;  ◀ (2)
   24 │     fresh->descriptor = 3;  ◀ (1)

  confirmed (warning), object `block(null_read.c:22)+8`

