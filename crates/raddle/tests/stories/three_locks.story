finding 1 of 1: deadlock: thread 3, thread 4 and thread 2 wait for each other

  (1) thread 2 locks `locks[0]`                      three_locks.c:14  transfer  holds `locks[0]`
  (2) thread 4 locks `locks[2]`                      three_locks.c:14  transfer  holds `locks[2]`
  (3) thread 3 locks `locks[1]`                      three_locks.c:14  transfer  holds `locks[1]`
  (4) thread 3 waits for `locks[2]`                  three_locks.c:15  transfer  holds `locks[1]`
  (5) thread 4 waits for `locks[0]`                  three_locks.c:15  transfer  holds `locks[2]`
  (6) thread 2 waits for `locks[1]`                  three_locks.c:15  transfer  holds `locks[0]`
  (7) thread 1 (main) waits for the end of thread 2  three_locks.c:28  main      no locks
      thread 3 wants `locks[2]`, which thread 4 holds; thread 4 wants `locks[0]`, which thread 2 holds; thread
        2 wants `locks[1]`, which thread 3 holds

  three_locks.c
   14 │     pthread_mutex_lock(&locks[from]);  ◀ (1) (2) (3)
   15 │     pthread_mutex_lock(&locks[to]);  ◀ (4) (5) (6)
   28 │         pthread_join(threads[i], NULL);  ◀ (7)

  the circle was closed by thread 2
  thread 2, thread 3 and thread 4 were created at three_locks.c:25 main
  confirmed (error), object `locks[2]`

