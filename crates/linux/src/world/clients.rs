//! What operations are known of: those that a program marks, and those of scripted clients.

use std::sync::Arc;

use raddle_protocol::Scripts;

use super::LinuxWorld;
use crate::call::WaitKey;
use crate::peers::Act;
use crate::thread::Activity;

impl LinuxWorld {
    /// Makes what the program says of its operations events, too.
    pub fn turn_on_marks(&mut self) {
        self.marks.turn_on();
    }

    /// Makes the files that fit these patterns probes at the end of a run, before anything runs. `*` stands for anything;
    /// a path that is not absolute begins in the program's folder. Only what the program has made or changed is told.
    pub fn tell_files(&mut self, patterns: Vec<String>) {
        crate::files::tell_files(&mut self.kernel, patterns);
    }

    /// Adds scripted clients of the program, which is their server; before anything runs.
    pub fn add_clients(&mut self, scripts: Arc<Scripts>) {
        self.kernel.add_peers(scripts);
    }

    /// What a run with scripted clients is about now.
    pub fn act(&self) -> Option<Act> {
        self.kernel.act()
    }

    /// Whether a thread sleeps until a client connects: in accept, or in a call that waits for a listening socket.
    pub fn waits_for_client(&self) -> bool {
        let kernel = self.kernel();
        let listens = |key: &WaitKey| match key {
            WaitKey::Object(inode) => kernel.is_listening(*inode),
            _ => false,
        };
        kernel
            .state
            .threads
            .values()
            .any(|thread| match &thread.activity {
                Activity::Waiting(waiting) => waiting.block.keys.iter().any(listens),
                _ => false,
            })
    }

    /// The port to which scripted clients speak.
    pub fn clients_port(&self) -> Option<u16> {
        self.kernel.clients_port()
    }

    /// The first request of the set-up that failed, and how.
    pub fn set_up_complaint(&self) -> Option<(String, String)> {
        self.kernel.set_up_complaint()
    }
}
