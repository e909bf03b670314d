finding 1 of 1: deadlock: thread 2 and thread 3 wait for each other

  (1) thread 2 locks `lock`                          reader_twice.c:15  reader          holds `lock`
  (2) thread 2 waits for `lock`                      reader_twice.c:8  twice_the_value  holds `lock`
  (3) thread 3 waits for `lock`                      reader_twice.c:22  writer          no locks
  (4) thread 1 (main) waits for the end of thread 2  reader_twice.c:36  main            no locks
      thread 2 wants to read under `lock` once more, for which thread 3 waits already; thread 3 wants `lock`,
        which thread 2 holds

  reader_twice.c
    8 │     pthread_rwlock_rdlock(&lock);  ◀ (2)
   15 │     pthread_rwlock_rdlock(&lock);  ◀ (1)
   22 │     pthread_rwlock_wrlock(&lock);  ◀ (3)
   36 │     pthread_join(threads[0], NULL);  ◀ (4)

  thread 2 was created at reader_twice.c:34 main
  thread 3 was created at reader_twice.c:35 main
  confirmed (error), object `lock`

