//! Schedulers around other schedulers.
//!
//! A wrapper says what it changes, and everything else is the inner scheduler's: a method that a wrapper does not name
//! is forwarded, also one that is added to [`Scheduler`] later. The one thing that cannot be forwarded blindly is
//! [`Passing`], by which a scheduler is not asked at all: every wrapper has to say whether it can do without being
//! asked.

use raddle_world::{Context, ContextId};

use crate::scheduler::{Clock, Faults, Given, Passing, Scheduler, View};

/// A scheduler around another.
pub trait Wrap {
    type Inner: Scheduler + ?Sized;
    fn inner(&self) -> &Self::Inner;
    fn inner_mut(&mut self) -> &mut Self::Inner;
    /// As [`Scheduler::passing`]: that of the inner scheduler if this one changes and notes nothing at points that are
    /// passed, none if it must be asked everywhere.
    fn passing(&mut self) -> Option<&mut dyn Passing>;

    fn pick(&mut self, view: &View<'_>) -> ContextId {
        self.inner_mut().pick(view)
    }
    fn bound(&self, who: &Context) -> u64 {
        self.inner().bound(who)
    }
    fn clock(&mut self) -> Option<&mut dyn Clock> {
        self.inner_mut().clock()
    }
    fn faults(&mut self) -> Option<&mut dyn Faults> {
        self.inner_mut().faults()
    }
    fn given(&mut self) -> Option<&mut dyn Given> {
        self.inner_mut().given()
    }
}

impl<W: Wrap> Scheduler for W {
    fn pick(&mut self, view: &View<'_>) -> ContextId {
        Wrap::pick(self, view)
    }

    fn bound(&self, who: &Context) -> u64 {
        Wrap::bound(self, who)
    }

    fn clock(&mut self) -> Option<&mut dyn Clock> {
        Wrap::clock(self)
    }

    fn faults(&mut self) -> Option<&mut dyn Faults> {
        Wrap::faults(self)
    }

    fn given(&mut self) -> Option<&mut dyn Given> {
        Wrap::given(self)
    }

    fn passing(&mut self) -> Option<&mut dyn Passing> {
        Wrap::passing(self)
    }
}

/// A pointer to a scheduler is one.
macro_rules! point {
    ($($pointer:ty)*) => {$(
        impl<S: Scheduler + ?Sized> Wrap for $pointer {
            type Inner = S;

            fn inner(&self) -> &S {
                self
            }

            fn inner_mut(&mut self) -> &mut S {
                self
            }

            fn passing(&mut self) -> Option<&mut dyn Passing> {
                (**self).passing()
            }
        }
    )*};
}

point! { Box<S> &mut S }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Follow, Pct, Profile};
    use raddle_trace::Schedule;

    /// Changes nothing and must be asked everywhere.
    struct Asked<S>(S);

    impl<S: Scheduler> Wrap for Asked<S> {
        type Inner = S;

        fn inner(&self) -> &S {
            &self.0
        }

        fn inner_mut(&mut self) -> &mut S {
            &mut self.0
        }

        fn passing(&mut self) -> Option<&mut dyn Passing> {
            None
        }
    }

    #[test]
    fn abilities_of_the_inner_scheduler_are_those_of_its_wrappers() {
        let mut wrapped = Asked(Box::new(Follow::new(&Schedule::default())));
        assert!(Scheduler::given(&mut wrapped).is_some());
        assert!(Scheduler::clock(&mut wrapped).is_some());
        let mut pct = Box::new(Pct::new(1, 2, &Profile::default()));
        assert!(Scheduler::given(&mut pct).is_none());
        assert!(Scheduler::passing(&mut pct).is_some());
        assert!(Scheduler::passing(&mut Asked(pct)).is_none());
    }
}
