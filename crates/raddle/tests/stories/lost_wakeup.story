finding 1 of 1: lost wake-up: thread 2 waits on `ready` for ever

  (1) thread 2 reads `is_ready` = 0                  lost_wakeup.c:10  consumer  no locks
  (2) thread 3 locks `lock`                          lost_wakeup.c:20  producer  holds `lock`
  (3) thread 3 writes `is_ready` = 1                 lost_wakeup.c:21  producer  holds `lock`
  (4) thread 3 signals `ready`                       lost_wakeup.c:22  producer  holds `lock`
  (5) thread 3 unlocks `lock`                        lost_wakeup.c:23  producer  no locks
  (6) thread 2 locks `lock`                          lost_wakeup.c:11  consumer  holds `lock`
  (7) thread 2 unlocks `lock`                        lost_wakeup.c:12  consumer  no locks
  (8) thread 2 begins to wait for `ready`            lost_wakeup.c:12  consumer  no locks
  (9) thread 1 (main) waits for the end of thread 2  lost_wakeup.c:31  main      no locks
  (10) thread 2 waits to be woken on `ready`         lost_wakeup.c:12  consumer  no locks
      thread 3 has woken `ready` at lost_wakeup.c:22 producer before thread 2 began to wait, and nobody is
        left to do it again

  lost_wakeup.c
   10 │     if (!is_ready) {  ◀ (1)
   11 │         pthread_mutex_lock(&lock);  ◀ (6)
   12 │         pthread_cond_wait(&ready, &lock);  ◀ (7) (8) (10)
   20 │     pthread_mutex_lock(&lock);  ◀ (2)
   21 │     is_ready = 1;  ◀ (3)
   22 │     pthread_cond_signal(&ready);  ◀ (4)
   23 │     pthread_mutex_unlock(&lock);  ◀ (5)
   31 │     pthread_join(one, NULL);  ◀ (9)

  thread 2 was created at lost_wakeup.c:29 main
  thread 3 was created at lost_wakeup.c:30 main
  confirmed (error), object `ready`

