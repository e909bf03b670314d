finding 1 of 2: double free: thread 2 frees the block again at double_free.c:15 close_session

  (1) thread 2 reads `block(double_free.c:26)` = 1   double_free.c:13  close_session  no locks
  (2) thread 3 reads `block(double_free.c:26)` = 1   double_free.c:13  close_session  no locks
  (3) thread 3 writes `block(double_free.c:26)` = 0  double_free.c:14  close_session  no locks
  (4) thread 3 frees `block(double_free.c:28)`       double_free.c:15  close_session  no locks
  (5) thread 2 writes `block(double_free.c:26)` = 0  double_free.c:14  close_session  no locks
  (6) thread 2 frees the block again                 double_free.c:15  close_session  no locks
      in this order thread 3 frees this block of 32 bytes before thread 2 is done with it

  double_free.c
   13 │     if (it->open) {  ◀ (1) (2)
   14 │         it->open = 0;  ◀ (3) (5)
   15 │         free(it->name);  ◀ (4) (6)

  thread 3 reads `block(double_free.c:26)` before thread 2 writes it at double_free.c:14 close_session; in the
    run that goes well it comes after that
  thread 2 was created at double_free.c:30 main
  thread 3 was created at double_free.c:31 main
  confirmed (error), object `block(double_free.c:26)`

finding 2 of 2: data race on `block(double_free.c:26)` between double_free.c:14 close_session and double_free.c:13 close_session

  (1) thread 2 writes `block(double_free.c:26)`  double_free.c:14  close_session  no locks
  (2) thread 3 reads `block(double_free.c:26)`   double_free.c:13  close_session  no locks
      no lock, creation, join or atomic operation orders these two accesses

  double_free.c
   13 │     if (it->open) {  ◀ (2)
   14 │         it->open = 0;  ◀ (1)

  confirmed (warning), object `block(double_free.c:26)`

