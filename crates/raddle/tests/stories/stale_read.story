finding 1 of 2: exit status 3 instead of 0

  (1) thread 3 reads `price` = 0        stale_read.c:16  buyer  no locks
  (2) thread 3 writes `paid` = 0        stale_read.c:16  buyer  no locks
  (3) thread 2 writes `price` = 7       stale_read.c:8  feed    no locks
  (4) thread 1 (main) reads `paid` = 0  stale_read.c:26  main   no locks
      in this order the program ends with status 3; without interruptions it ends with 0

  stale_read.c
    8 │     price = 7;  ◀ (3)
   16 │     paid = price;  ◀ (1) (2)
   26 │     return paid == 7 ? 0 : 3;  ◀ (4)

  thread 3 reads `price` before thread 2 writes it at stale_read.c:8 feed; in the run that goes well it comes
    after that
  thread 2 was created at stale_read.c:22 main
  thread 3 was created at stale_read.c:23 main
  confirmed (error), object `paid`

finding 2 of 2: data race on `price` between stale_read.c:8 feed and stale_read.c:16 buyer

  (1) thread 2 writes `price`  stale_read.c:8  feed    no locks
  (2) thread 3 reads `price`   stale_read.c:16  buyer  no locks
      no lock, creation, join or atomic operation orders these two accesses

  stale_read.c
    8 │     price = 7;  ◀ (1)
   16 │     paid = price;  ◀ (2)

  confirmed (warning), object `price`

