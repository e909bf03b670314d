finding 1 of 1: the program gives up: range is torn: 100..10

  (1) thread 2 locks `lock`                two_fields.c:13  mover    holds `lock`
  (2) thread 2 reads `range.start` = 0     two_fields.c:14  mover    holds `lock`
  (3) thread 2 writes `range.start` = 100  two_fields.c:14  mover    holds `lock`
  (4) thread 2 unlocks `lock`              two_fields.c:15  mover    no locks
  (5) thread 3 locks `lock`                two_fields.c:24  checker  holds `lock`
  (6) thread 3 reads `range.end` = 10      two_fields.c:25  checker  holds `lock`
  (7) thread 3 reads `range.start` = 100   two_fields.c:25  checker  holds `lock`
  (8) thread 3 reads `range.end` = 10      two_fields.c:26  checker  holds `lock`
  (9) thread 3 reads `range.start` = 100   two_fields.c:26  checker  holds `lock`
  (10) thread 3 gives up                   two_fields.c:27  checker  holds `lock`
      in this order thread 3 gives up at two_fields.c:27 checker

  two_fields.c
   13 │     pthread_mutex_lock(&lock);  ◀ (1)
   14 │     range.start += 100;  ◀ (2) (3)
   15 │     pthread_mutex_unlock(&lock);  ◀ (4)
   24 │     pthread_mutex_lock(&lock);  ◀ (5)
   25 │     if (range.end - range.start != 10) {  ◀ (6) (7)
   26 │         fprintf(stderr, "range is torn: %d..%d\n", range.start, range.end);  ◀ (8) (9)
   27 │         abort();  ◀ (10)

  thread 2 was created at two_fields.c:35 main
  thread 3 was created at two_fields.c:36 main
  confirmed (error), object `range.start`

