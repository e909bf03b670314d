finding 1 of 1: deadlock: thread 3 and thread 2 wait for each other

  (1) thread 2 locks `a`                             not_started.c:8  one    holds `a`
  (2) thread 3 locks `b`                             not_started.c:17  two   holds `b`
  (3) thread 3 waits for `a`                         not_started.c:18  two   holds `b`
  (4) thread 2 waits for `b`                         not_started.c:9  one    holds `a`
  (5) thread 1 (main) waits for the end of thread 2  not_started.c:36  main  no locks
      thread 3 wants `a`, which thread 2 holds; thread 2 wants `b`, which thread 3 holds

  not_started.c
    8 │     pthread_mutex_lock(&a);  ◀ (1)
    9 │     pthread_mutex_lock(&b);  ◀ (4)
   17 │     pthread_mutex_lock(&b);  ◀ (2)
   18 │     pthread_mutex_lock(&a);  ◀ (3)
   36 │         pthread_join(threads[i], NULL);  ◀ (5)

  the circle was closed by thread 2
  thread 2 was created at not_started.c:31 main
  thread 3 was created at not_started.c:32 main
  confirmed (error), object `a`

