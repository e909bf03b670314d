//! Scripted clients of a server: contexts without code, each of which owns one end of a socket and plays a script.
//!
//! ```text
//!   Starting ──it listens──▶ SetUp ──▶ Connecting ──▶ Clients ──all done──▶ Probes ──▶ the world ends
//! ```
//! Each change of the act happens when no other context has anything to do. A client goes on when it is chosen: once to
//! say what it will ask, once to ask; then it waits for the reply. A request costs no instructions.

use std::sync::Arc;

use raddle_protocol::{Login, Scripts};
use raddle_world::{
    ContextId, Duration, Event, EventKind, Liveness, Mark, Site, Stop, Value, WaitReason,
};

use crate::files::{self, InodeId, PeerBytes};
use crate::kernel::Kernel;
use crate::thread::Tid;

/// Bytes of a reply that are kept.
const REPLY_MAX: usize = 1 << 20;

/// What a run is about now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    /// The server is not ready yet.
    Starting,
    SetUp,
    /// Clients are connected, but have said nothing.
    Connecting,
    Clients,
    Probes,
}

/// All scripted clients.
#[derive(Debug, Clone)]
pub(crate) struct Peers {
    scripts: Arc<Scripts>,
    peers: Vec<Peer>,
    act: Act,
    /// The first request of the set-up that failed, and how.
    complaint: Option<(String, String)>,
}

#[derive(Debug, Clone)]
struct Peer {
    context: ContextId,
    role: Role,
    socket: Option<InodeId>,
    /// Requests that were answered.
    done: usize,
    doing: Doing,
    received: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    SetUp,
    Client(usize),
    Prober,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Nothing,
    /// It has said what it will ask.
    Announced,
    /// It waits for the reply.
    Asked,
    /// It has not logged in yet; whether it has said nothing so far.
    LoggingIn {
        is_first: bool,
    },
}

impl Peers {
    fn requests(&self, role: Role) -> &[String] {
        match role {
            Role::SetUp => &self.scripts.set_up,
            Role::Client(number) => &self.scripts.clients[number],
            Role::Prober => &self.scripts.probes,
        }
    }

    fn request(&self, index: usize) -> Option<&String> {
        let peer = &self.peers[index];
        self.requests(peer.role).get(peer.done)
    }

    fn find(&self, role: Role) -> usize {
        let found = self.peers.iter().position(|peer| peer.role == role);
        found.expect("there is somebody for each role")
    }

    fn are_clients_done(&self) -> bool {
        (0..self.peers.len()).all(|index| {
            let is_client = matches!(self.peers[index].role, Role::Client(_));
            !is_client || self.request(index).is_none()
        })
    }
}

/// A letter for a client, a number if there are more than letters.
fn client_name(number: usize) -> String {
    match u8::try_from(number) {
        Ok(number @ 0..26) => format!("client {}", char::from(b'A' + number)),
        _ => format!("client {}", number + 1),
    }
}

impl Kernel {
    /// Adds the clients of a server; before anything runs.
    pub(crate) fn add_peers(&mut self, scripts: Arc<Scripts>) {
        let clients = (0..scripts.clients.len()).map(|number| {
            let name = client_name(number);
            (name, Role::Client(number))
        });
        let roles = clients.chain([
            ("prober".to_owned(), Role::Prober),
            ("set-up".to_owned(), Role::SetUp),
        ]);
        let mut peers = Vec::new();
        for (name, role) in roles {
            let context = self.state.contexts.create(None, name.into());
            // It has no thread.
            self.state.context_threads.push(Tid(0));
            peers.push(Peer {
                context,
                role,
                socket: None,
                done: 0,
                doing: Doing::Nothing,
                received: Vec::new(),
            });
            self.state.contexts.set_liveness(context, waiting());
        }
        self.state.peers = Some(Peers {
            scripts,
            peers,
            act: Act::Starting,
            complaint: None,
        });
    }

    /// What the run is about; none without scripted clients.
    pub(crate) fn act(&self) -> Option<Act> {
        Some(self.state.peers.as_ref()?.act)
    }

    pub(crate) fn clients_port(&self) -> Option<u16> {
        Some(self.state.peers.as_ref()?.scripts.port)
    }

    /// The first request of the set-up that failed, and how.
    pub(crate) fn set_up_complaint(&self) -> Option<(String, String)> {
        self.state.peers.as_ref()?.complaint.clone()
    }

    pub(crate) fn peer_of(&self, context: ContextId) -> Option<usize> {
        let peers = &self.state.peers.as_ref()?.peers;
        peers.iter().position(|peer| peer.context == context)
    }

    /// A client goes on.
    pub(crate) fn run_peer(&mut self, index: usize) -> Stop {
        let (context, role, doing) = {
            let peer = &self.peers().peers[index];
            (peer.context, peer.role, peer.doing)
        };
        if !self.state.contexts.get(context).is_runnable() {
            return Stop::Blocked;
        }
        self.state.contexts.get_mut(context).steps += 1;
        self.state.now = self.state.now.after(Duration(1));
        let request = self.peers().request(index).cloned();
        let Some(request) = request else {
            // Only the prober is called when it has nothing to ask: the run is over.
            self.state.ended = Some(0);
            files::tell_at_end(self);
            return Stop::WorldDone { status: 0 };
        };
        if doing == Doing::Nothing {
            let is_probe = role == Role::Prober;
            let name = request;
            self.tell_of(context, role, Mark::Begin { name, is_probe });
            self.peers_mut().peers[index].doing = Doing::Announced;
            return Stop::Sync;
        }
        self.ask(index, &request);
        Stop::Sync
    }

    /// Sends a request.
    fn ask(&mut self, index: usize, request: &str) {
        let bytes = self.peers().scripts.protocol.request(request);
        // What came without being asked for, as a greeting, is no reply.
        self.receive(index);
        let peer = &mut self.peers_mut().peers[index];
        peer.received.clear();
        peer.doing = Doing::Asked;
        let context = peer.context;
        let is_connected = peer.socket.is_some();
        self.state.contexts.set_liveness(context, waiting());
        if !is_connected {
            self.connect_peer(index);
        }
        if !self.send(index, &bytes) {
            self.answered(index, Value::Error(b"the server takes no request".to_vec()));
        }
    }

    /// A thread of the server: clients are of the same user.
    fn somebody(&self) -> Option<Tid> {
        let first = self.state.processes.get(&self.state.first)?;
        first.threads.first().copied()
    }

    fn connect_peer(&mut self, index: usize) -> Option<InodeId> {
        let port = self.peers().scripts.port;
        let somebody = self.somebody()?;
        let socket = files::peer_connects(self, somebody, port);
        let has_login = self.peers().scripts.protocol.login(&[], true).is_some();
        let peer = &mut self.peers_mut().peers[index];
        peer.socket = socket;
        if has_login && socket.is_some() {
            peer.doing = Doing::LoggingIn { is_first: true };
            self.log_in(index);
        }
        socket
    }

    /// Goes on with logging in as far as what was received allows.
    fn log_in(&mut self, index: usize) {
        let is_closed = self.receive(index);
        while let Doing::LoggingIn { is_first } = self.peers().peers[index].doing {
            let peers = self.peers();
            let received = &peers.peers[index].received;
            let refused = match peers.scripts.protocol.login(received, is_first) {
                None | Some(Ok(Login::Done)) => {
                    let peer = &mut self.peers_mut().peers[index];
                    peer.doing = Doing::Nothing;
                    peer.received.clear();
                    return;
                }
                Some(Ok(Login::Wait)) if is_closed => "the server closes the connection".to_owned(),
                Some(Ok(Login::Wait)) => return,
                Some(Ok(Login::Say(bytes))) => {
                    let peer = &mut self.peers_mut().peers[index];
                    peer.doing = Doing::LoggingIn { is_first: false };
                    peer.received.clear();
                    if self.send(index, &bytes) {
                        continue;
                    }
                    "the server takes no bytes".to_owned()
                }
                Some(Ok(Login::Refused(words))) => words,
                Some(Err(raddle_protocol::Nonsense)) => {
                    format!("not a greeting: {}", String::from_utf8_lossy(received))
                }
            };
            let complaint = (
                "log in".to_owned(),
                Value::Error(refused.into()).to_string(),
            );
            let peers = self.peers_mut();
            peers.complaint.get_or_insert(complaint);
            peers.peers[index].doing = Doing::Nothing;
        }
    }

    /// Sends bytes of a client; says whether the server takes all of them.
    fn send(&mut self, index: usize, bytes: &[u8]) -> bool {
        let socket = self.peers().peers[index].socket;
        let sender = self.somebody();
        socket.zip(sender).is_some_and(|(socket, sender)| {
            files::peer_sends(self, sender, socket, bytes) == Some(bytes.len())
        })
    }

    /// Takes what has come for a client; says whether the server has closed the connection.
    fn receive(&mut self, index: usize) -> bool {
        let Some(socket) = self.peers().peers[index].socket else {
            return true;
        };
        loop {
            match files::peer_receives(self, socket) {
                PeerBytes::Some(bytes) => {
                    let received = &mut self.peers_mut().peers[index].received;
                    if received.len() < REPLY_MAX {
                        received.extend(bytes);
                    }
                }
                PeerBytes::NotYet => return false,
                PeerBytes::Closed => return true,
            }
        }
    }

    /// Looks whether replies have come; after anything that may have sent some.
    pub(crate) fn look_for_replies(&mut self) {
        let count = match &self.state.peers {
            Some(peers) => peers.peers.len(),
            None => return,
        };
        for index in 0..count {
            match self.peers().peers[index].doing {
                Doing::Asked => self.look_for_reply(index),
                Doing::LoggingIn { .. } => self.log_in(index),
                Doing::Nothing | Doing::Announced => {}
            }
        }
    }

    fn look_for_reply(&mut self, index: usize) {
        let is_closed = self.receive(index);
        let peers = self.peers();
        let Some(request) = peers.request(index) else {
            return;
        };
        let received = &peers.peers[index].received;
        let protocol = &peers.scripts.protocol;
        let value = match protocol.reply(request, received, is_closed) {
            Ok(Some(reply)) => {
                let bytes = protocol.content(&received[..reply.length.min(received.len())]);
                if reply.is_error {
                    Value::Error(bytes)
                } else {
                    Value::Text(bytes)
                }
            }
            Ok(None) if is_closed => {
                let mut bytes = b"connection closed after ".to_vec();
                bytes.extend(received);
                Value::Error(bytes)
            }
            Ok(None) => return,
            Err(raddle_protocol::Nonsense) => {
                let mut bytes = b"not a reply: ".to_vec();
                bytes.extend(received);
                Value::Error(bytes)
            }
        };
        self.answered(index, value);
    }

    /// A request has its reply.
    fn answered(&mut self, index: usize, value: Value) {
        let request = self.peers().request(index).cloned().unwrap_or_default();
        let peer = &mut self.peers_mut().peers[index];
        peer.doing = Doing::Nothing;
        peer.done += 1;
        peer.received.clear();
        let (context, role) = (peer.context, peer.role);
        if role == Role::SetUp && value.is_error() {
            let complaint = (request, value.to_string());
            self.peers_mut().complaint.get_or_insert(complaint);
        }
        self.tell_of(context, role, Mark::Result(value));
        self.tell_of(context, role, Mark::End);
        let has_more = self.peers().request(index).is_some();
        let liveness = match role {
            Role::Client(_) if has_more => Liveness::Runnable,
            Role::Client(_) => Liveness::Done,
            // Its next request waits until the server is quiet.
            Role::SetUp | Role::Prober => waiting(),
        };
        self.state.contexts.set_liveness(context, liveness);
    }

    /// Whether no context can run; the clock may also jump while one can.
    pub(crate) fn contexts_are_quiet(&self) -> bool {
        self.state.contexts.runnable().is_empty()
    }

    /// No context can run: whether the next act begins, or a client that waits for quiet goes on.
    pub(crate) fn next_act(&mut self) -> bool {
        let Some(peers) = &self.state.peers else {
            return false;
        };
        let quiet_until = self.state.now.after(Duration(peers.scripts.quiet));
        if self.next_deadline().is_some_and(|next| next <= quiet_until) {
            return false;
        }
        let peers = self.peers();
        let (set_up, prober) = (peers.find(Role::SetUp), peers.find(Role::Prober));
        let is_idle = |index: usize| peers.peers[index].doing == Doing::Nothing;
        match peers.act {
            Act::Starting => {
                let is_ready = files::is_listening(self, peers.scripts.port);
                if is_ready {
                    self.peers_mut().act = Act::SetUp;
                    // Where clients have to log in, that comes before the first request.
                    let has_login = self.peers().scripts.protocol.login(&[], true).is_some();
                    if has_login && self.peers().request(set_up).is_some() {
                        self.connect_peer(set_up);
                    }
                }
                is_ready
            }
            Act::SetUp if !is_idle(set_up) => false,
            Act::SetUp => {
                if peers.request(set_up).is_some() {
                    self.wake_peer(set_up);
                } else {
                    self.peers_mut().act = Act::Connecting;
                    self.connect_all();
                }
                true
            }
            Act::Connecting => {
                self.peers_mut().act = Act::Clients;
                for index in 0..self.peers().peers.len() {
                    let is_client = matches!(self.peers().peers[index].role, Role::Client(_));
                    if is_client && self.peers().request(index).is_some() {
                        self.wake_peer(index);
                    }
                }
                true
            }
            Act::Clients if !peers.are_clients_done() => false,
            Act::Clients => {
                self.peers_mut().act = Act::Probes;
                self.wake_peer(prober);
                true
            }
            Act::Probes if !is_idle(prober) => false,
            Act::Probes => {
                self.wake_peer(prober);
                true
            }
        }
    }

    /// Clients and the prober are connected before schedules begin: to accept them is no part of what is tested.
    fn connect_all(&mut self) {
        for index in 0..self.peers().peers.len() {
            if self.peers().peers[index].role != Role::SetUp {
                self.connect_peer(index);
            }
        }
    }

    fn wake_peer(&mut self, index: usize) {
        let context = self.peers().peers[index].context;
        self.state
            .contexts
            .set_liveness(context, Liveness::Runnable);
    }

    /// What a client does is an event, except before schedules begin.
    fn tell_of(&mut self, context: ContextId, role: Role, mark: Mark) {
        if role == Role::SetUp {
            return;
        }
        self.events.push(Event {
            context,
            step: self.state.contexts.get(context).steps,
            site: Site::NOWHERE,
            kind: EventKind::Mark(Box::new(mark)),
        });
    }

    fn peers(&self) -> &Peers {
        let peers = self.state.peers.as_ref();
        peers.expect("only worlds with clients ask for them")
    }

    fn peers_mut(&mut self) -> &mut Peers {
        let peers = self.state.peers.as_mut();
        peers.expect("only worlds with clients ask for them")
    }
}

fn waiting() -> Liveness {
    Liveness::Blocked(WaitReason::Io {
        descriptors: Vec::new(),
    })
}
