//! How many jobs go in one message.

use raddle_stdx::width::to_usize;

/// A batch should take about this long: messages cost little then, and no worker is waited for.
const BATCH_MICROS: u64 = 8_000;
/// A batch should take no less, even at the end of a generation: server, worker and director have work with each message.
const BATCH_MICROS_MIN: u64 = 1_000;

/// How many of the jobs that are left, of so many, make a batch: ever fewer, so that all threads end at about the same
/// time, but not so few that their messages cost more than they do.
pub(crate) fn batch_size((left, all): (u64, u64), threads: u64, micros_per_job: u64) -> usize {
    let micros = micros_per_job.max(1);
    let least = BATCH_MICROS_MIN
        .div_ceil(micros)
        .min(all.div_ceil(threads))
        .max(1);
    let most = (BATCH_MICROS / micros).max(least);
    to_usize((left / (2 * threads)).clamp(least, most))
}

#[cfg(test)]
mod tests {
    use raddle_stdx::width::to_u64;

    use super::*;

    fn batches(threads: u64, micros_per_job: u64) -> Vec<u64> {
        let mut left = 64;
        let mut batches = Vec::new();
        while left > 0 {
            let size = to_u64(batch_size((left, 64), threads, micros_per_job)).min(left);
            left -= size;
            batches.push(size);
        }
        batches
    }

    #[test]
    fn batches_get_smaller_but_never_cheaper_than_their_messages() {
        // Long schedules: one at a time in the end, and no batch longer than its time.
        assert_eq!(batches(2, 2_000)[..3], [4, 4, 4]);
        assert_eq!(batches(2, 2_000).last(), Some(&1));
        assert_eq!(batches(64, 1_000_000), [1; 64]);
        // Short ones: few messages, and work for every thread.
        assert_eq!(batches(2, 200), [16, 12, 9, 6, 5, 5, 5, 5, 1]);
        assert_eq!(batches(2, 10), [32, 32]);
    }
}
