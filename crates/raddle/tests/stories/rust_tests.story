finding 1 of 2: test `increments_are_not_lost`: assertion failed: thread 'increments_are_not_lost' (1001) panicked at rust_tests.rs:18:5: assertion `left == right` failed

  (1) thread 2 `increments_are_` reads `block(rust_tests.rs:9)+16` = 0  rust_tests.rs:15  rust_tests::increments_are_not_lost  no locks
  (2) thread 3 `increments_are_` reads `block(rust_tests.rs:9)+16` = 0  rust_tests.rs:12  rust_tests::increments_are_not_lost::{{closure}}  no locks
  (3) thread 3 `increments_are_` atomically updates `block(rust_tests.rs:9)+16`, which was 0  rust_tests.rs:13  rust_tests::increments_are_not_lost::{{closure}}  no locks
  (4) thread 2 `increments_are_` atomically updates `block(rust_tests.rs:9)+16`, which was 1  rust_tests.rs:16  rust_tests::increments_are_not_lost  no locks
  (5) thread 2 `increments_are_` reads `block(rust_tests.rs:9)+16` = 1  rust_tests.rs:18  rust_tests::increments_are_not_lost  no locks
  (6) thread 2 `increments_are_` gives up  rust_tests.rs:18  rust_tests::increments_are_not_lost  no locks
      in this order thread 2 `increments_are_` gives up at rust_tests.rs:18
        rust_tests::increments_are_not_lost

  rust_tests.rs
   12 │         let seen = other.load(Ordering::SeqCst);  ◀ (2)
   13 │         other.store(seen + 1, Ordering::SeqCst);  ◀ (3)
   15 │     let seen = count.load(Ordering::SeqCst);  ◀ (1)
   16 │     count.store(seen + 1, Ordering::SeqCst);  ◀ (4)
   18 │     assert_eq!(count.load(Ordering::SeqCst), 2);  ◀ (5) (6)

  thread 3 `increments_are_` reads `block(rust_tests.rs:9)+16` before thread 2 `increments_are_` writes it at
    rust_tests.rs:16 rust_tests::increments_are_not_lost; in the run that goes well it comes after that
  confirmed (error), object `block(rust_tests.rs:9)+16`

finding 2 of 2: test `the_waiter_is_woken`: lost wake-up: thread 2 `the_waiter_is_w` waits on `block(rust_tests.rs:23)+24` for ever

  (1) thread 2 `the_waiter_is_w` reads `block(rust_tests.rs:23)+28` = 0  rust_tests.rs:30  rust_tests::the_waiter_is_woken               no locks
  (2) thread 3 `the_waiter_is_w` atomically updates `block(rust_tests.rs:23)+28`, which was 0  rust_tests.rs:26  rust_tests::the_waiter_is_woken::{{closure}}  no locks
  (3) thread 3 `the_waiter_is_w` atomically updates `block(rust_tests.rs:23)+24`, which was 0 in `Condvar::notify_one`  rust_tests.rs:27  rust_tests::the_waiter_is_woken::{{closure}}  no locks
  (4) thread 2 `the_waiter_is_w` reads `block(rust_tests.rs:23)+24` = 1 in `Condvar::wait`  rust_tests.rs:32  rust_tests::the_waiter_is_woken               no locks
  (5) thread 2 `the_waiter_is_w` reads `block(rust_tests.rs:23)+24` = 1 in `Condvar::wait`  rust_tests.rs:32  rust_tests::the_waiter_is_woken               no locks
  (6) thread 2 `the_waiter_is_w` waits to be woken on `block(rust_tests.rs:23)+24`  rust_tests.rs:32  rust_tests::the_waiter_is_woken               no locks
      thread 3 `the_waiter_is_w` has woken `block(rust_tests.rs:23)+24` at rust_tests.rs:27
        rust_tests::the_waiter_is_woken::{{closure}} before thread 2 `the_waiter_is_w` began to wait, and
        nobody is left to do it again

  rust_tests.rs
   26 │         other.2.store(true, Ordering::SeqCst);  ◀ (2)
   27 │         other.1.notify_one();  ◀ (3)
   30 │     if !is_done.load(Ordering::SeqCst) {  ◀ (1)
   32 │         let _guard = condition.wait(guard).unwrap();  ◀ (4) (5) (6)

  confirmed (error), object `block(rust_tests.rs:23)+24`

