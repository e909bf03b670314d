//! placeholder
#[derive(Debug, Default)]
pub(crate) struct StubCache {}
