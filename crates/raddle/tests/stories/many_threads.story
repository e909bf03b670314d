finding 1 of 2: exit status 2 instead of 0

  (1) thread 3 locks `lock`         many_threads.c:20  count  holds `lock`
  (2) thread 3 reads `counted` = 0  many_threads.c:21  count  holds `lock`
  (3) thread 3 reads `limit` = 0    many_threads.c:21  count  holds `lock`
  (4) thread 3 ends the program     many_threads.c:23  count  holds `lock`
      in this order the program ends with status 2; without interruptions it ends with 0

  many_threads.c
   20 │     pthread_mutex_lock(&lock);  ◀ (1)
   21 │     if (counted >= limit) {  ◀ (2) (3)
   23 │         exit(2);  ◀ (4)

  the last thing it printed: limit reached
  thread 3 reads `limit` before thread 2 writes it at many_threads.c:14 first; in the run that goes well it
    comes after that
  thread 3 was created at many_threads.c:33 main
  confirmed (error), object `limit`

finding 2 of 2: data race on `limit` between many_threads.c:14 first and many_threads.c:21 count

  (1) thread 2 writes `limit`  many_threads.c:14  first  no locks
  (2) thread 3 reads `limit`   many_threads.c:21  count  holds `lock`
      no lock, creation, join or atomic operation orders these two accesses

  many_threads.c
   14 │     limit = 100;  ◀ (1)
   21 │     if (counted >= limit) {  ◀ (2)

  thread 3 holds `lock` here, thread 2 does not
  confirmed (warning), object `limit`

