finding 1 of 1: exit status 5 instead of 0

  (1) thread 1 (main) reads `list` = 0                      interrupted.c:36  main       no locks
  (2) thread 1 (main) writes `block(interrupted.c:35)` = 0  interrupted.c:36  main       no locks
  (3) thread 1 (main) writes `list` = 0x..        interrupted.c:37  main       no locks
  (4) thread 1 (main) is interrupted by SIGUSR1             interrupted.c:38  main       no locks
  (5) thread 1 (main) reads `list` = 0x..         interrupted.c:18  on_signal  no locks
  (6) thread 1 (main) reads `block(interrupted.c:35)` = 0   interrupted.c:18  on_signal  no locks
  (7) thread 1 (main) reads `count` = 0                     interrupted.c:20  on_signal  no locks
  (8) thread 1 (main) ends the program                      interrupted.c:21  on_signal  no locks
      in this order the program ends with status 5; without interruptions it ends with 0

  interrupted.c
   18 │     for (struct node *node = list; node; node = node->next)  ◀ (5) (6)
   20 │     if (seen != count)  ◀ (7)
   21 │         _exit(5);  ◀ (8)
   36 │         node->next = list;  ◀ (1) (2)
   37 │         list = node;  ◀ (3)
   38 │         count++;  ◀ (4)

  confirmed (error), object `count`

