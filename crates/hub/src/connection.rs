//! The hub as this process sees it: a connection, its streams and its store, behind calls that wait.

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer, pull};
use async_nats::jetstream::object_store::{self, ObjectStore};
use async_nats::jetstream::stream::{self, RetentionPolicy, StorageType};
use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectOptions};
use raddle_linux::ContentId;
use thiserror::Error;
use tokio::io::AsyncReadExt;
use tokio::runtime::Runtime;
use tokio::task::AbortHandle;

use crate::content::{self, Damaged};

/// The work queue.
pub(crate) const JOBS: &str = "RADDLE_JOBS";
/// What workers told: kept until a campaign is over, so that one that was broken off can be continued.
pub(crate) const OUTCOMES: &str = "RADDLE_OUTCOMES";
/// Bucket of manifests and files.
const STORE: &str = "raddle-contents";

/// After this time a job that a worker took and never finished is given to another.
pub(crate) const ACK_WAIT: Duration = Duration::from_secs(10);
/// What is left of campaigns that never went on is thrown away.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// Messages with one id that come within this time are one.
const SAME: Duration = Duration::from_secs(120);
/// How long the hub may take to answer.
const ANSWER: Duration = Duration::from_secs(5);

/// Why the hub is of no use.
#[derive(Debug, Error)]
pub enum HubError {
    #[error(
        "no hub answers at {url}: {reason}; start one there with `raddle hub`, or check address and credentials"
    )]
    Unreachable { url: String, reason: String },
    #[error("the hub at {url} does not let us {what}: {reason}")]
    Failed {
        url: String,
        what: String,
        reason: String,
    },
    #[error("{id} came damaged from the hub: {damage}", id = id.as_str())]
    Damaged { id: ContentId, damage: Damaged },
    #[error("no runtime for the hub's client could be started: {0}")]
    Runtime(std::io::Error),
}

/// How to get in.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// `nats://host:port` or `tls://host:port`.
    pub url: String,
    /// A file with user credentials of NATS (JWT and key).
    pub credentials: Option<PathBuf>,
    /// A file with the seed of an nkey.
    pub nkey: Option<PathBuf>,
    /// `user:password`.
    pub user: Option<(String, String)>,
    /// Certificates of the authorities that are trusted besides.
    pub ca: Option<PathBuf>,
}

/// A connection to a hub.
pub struct Hub {
    runtime: Runtime,
    url: String,
    pub(crate) client: Client,
    pub(crate) context: Context,
    store: ObjectStore,
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("url", &self.url).finish()
    }
}

impl Hub {
    /// Connects, and makes streams and store if they are not there.
    ///
    /// # Errors
    /// Nothing answers, or it is no NATS server with JetStream that lets us in.
    pub fn connect(access: &Access) -> Result<Self, HubError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .thread_name("hub")
            .build()
            .map_err(HubError::Runtime)?;
        let unreachable = |reason: String| HubError::Unreachable {
            url: access.url.clone(),
            reason,
        };
        let client = runtime
            .block_on(async {
                let options = options(access).await?;
                let connected = options.connect(access.url.as_str()).await;
                connected.map_err(|error| error.to_string())
            })
            .map_err(unreachable)?;
        // The client starts tasks of its own.
        let mut context = {
            let _inside = runtime.enter();
            jetstream::new(client.clone())
        };
        context.set_timeout(ANSWER);
        let failed = |what: &str, reason: String| HubError::Failed {
            url: access.url.clone(),
            what: what.to_owned(),
            reason,
        };
        let store = runtime
            .block_on(prepare(&context))
            .map_err(|reason| failed("make its streams (has it JetStream?)", reason))?;
        Ok(Self {
            runtime,
            url: access.url.clone(),
            client,
            context,
            store,
        })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Waits for something of the client's.
    pub(crate) fn wait<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Lets something of the client's go on beside.
    pub(crate) fn beside<F: Future<Output = ()> + Send + 'static>(&self, future: F) -> AbortHandle {
        self.runtime.spawn(future).abort_handle()
    }

    pub(crate) fn failed(&self, what: &str, reason: impl fmt::Display) -> HubError {
        HubError::Failed {
            url: self.url.clone(),
            what: what.to_owned(),
            reason: reason.to_string(),
        }
    }

    /// Bytes of a message at most.
    pub(crate) fn message_bytes_max(&self) -> usize {
        self.client.max_payload().saturating_sub(4096)
    }

    /// Stores content under its digest, unless it is there; says whether it was not.
    ///
    /// # Errors
    /// The hub does not take it.
    pub fn put(&self, bytes: &[u8]) -> Result<(ContentId, bool), HubError> {
        let id = content::id_of(bytes);
        let is_new = self.wait(async {
            let name = id.as_str();
            if self.store.info(name).await.is_ok() {
                return Ok(false);
            }
            let packed = content::pack(bytes);
            let stored = self.store.put(name, &mut packed.as_slice()).await;
            stored.map(|_| true)
        });
        let is_new = is_new.map_err(|error| self.failed("store a file", error))?;
        Ok((id, is_new))
    }

    /// The content with this digest.
    ///
    /// # Errors
    /// The hub does not have it, or gives something else.
    pub fn get(&self, id: &ContentId) -> Result<Vec<u8>, HubError> {
        let packed = self.wait(async {
            let mut object = self
                .store
                .get(id.as_str())
                .await
                .map_err(|e| e.to_string())?;
            let mut packed = Vec::new();
            let read = object.read_to_end(&mut packed).await;
            read.map(|_| packed).map_err(|error| error.to_string())
        });
        let packed = packed.map_err(|error| self.failed("fetch a file", error))?;
        content::unpack_checked(&packed, id).map_err(|damage| HubError::Damaged {
            id: id.clone(),
            damage,
        })
    }

    /// The queue from which workers of one build take jobs.
    pub(crate) fn queue(&self, token: &str) -> Result<PullConsumer, HubError> {
        let config = pull::Config {
            durable_name: Some(format!("workers-{token}")),
            filter_subject: format!("raddle.jobs.{token}.>"),
            ack_policy: AckPolicy::Explicit,
            ack_wait: ACK_WAIT,
            max_ack_pending: 20_000,
            ..pull::Config::default()
        };
        let name = format!("workers-{token}");
        let queue = self.wait(async {
            let stream = self.context.get_stream(JOBS).await;
            let stream = stream.map_err(|error| error.to_string())?;
            let queue = stream.get_or_create_consumer(&name, config).await;
            queue.map_err(|error| error.to_string())
        });
        queue.map_err(|error| self.failed("take jobs", error))
    }

    /// What was told of a campaign, from the message with this number on.
    pub(crate) fn told_since(
        &self,
        subject: &str,
        sequence: u64,
    ) -> Result<PullConsumer, HubError> {
        let config = pull::Config {
            filter_subject: subject.to_owned(),
            ack_policy: AckPolicy::None,
            deliver_policy: DeliverPolicy::ByStartSequence {
                start_sequence: sequence.max(1),
            },
            inactive_threshold: Duration::from_secs(30),
            ..pull::Config::default()
        };
        let consumer = self.wait(async {
            let stream = self.context.get_stream(OUTCOMES).await;
            let stream = stream.map_err(|error| error.to_string())?;
            let consumer = stream.create_consumer(config).await;
            consumer.map_err(|error| error.to_string())
        });
        consumer.map_err(|error| self.failed("read outcomes", error))
    }

    /// Throws away what a stream holds under a subject.
    ///
    /// # Errors
    /// The hub does not answer.
    pub(crate) fn purge(&self, stream: &str, subject: &str) -> Result<(), HubError> {
        let purged = self.wait(async {
            let stream = self.context.get_stream(stream).await;
            let stream = stream.map_err(|error| error.to_string())?;
            let purged = stream.purge().filter(subject).await;
            purged.map(drop).map_err(|error| error.to_string())
        });
        purged.map_err(|error| self.failed("throw away what is over", error))
    }
}

async fn options(access: &Access) -> Result<ConnectOptions, String> {
    let mut options = ConnectOptions::new()
        .name("raddle")
        .connection_timeout(ANSWER)
        // It connects again as often as it must: the hub may come back after an hour.
        .ping_interval(Duration::from_secs(20));
    if let Some(file) = &access.credentials {
        let read = options.credentials_file(file).await;
        options = read.map_err(|error| format!("{}: {error}", file.display()))?;
    }
    if let Some(file) = &access.nkey {
        let seed = std::fs::read_to_string(file);
        let seed = seed.map_err(|error| format!("{}: {error}", file.display()))?;
        options = options.nkey(seed.trim().to_owned());
    }
    if let Some((user, password)) = access.user.clone() {
        options = options.user_and_password(user, password);
    }
    if let Some(file) = access.ca.clone() {
        options = options.add_root_certificates(file);
    }
    Ok(options)
}

async fn prepare(context: &Context) -> Result<ObjectStore, String> {
    let jobs = stream::Config {
        name: JOBS.into(),
        subjects: vec!["raddle.jobs.>".into()],
        retention: RetentionPolicy::WorkQueue,
        storage: StorageType::File,
        max_age: KEPT,
        duplicate_window: SAME,
        ..stream::Config::default()
    };
    let outcomes = stream::Config {
        name: OUTCOMES.into(),
        subjects: vec!["raddle.outcomes.>".into()],
        retention: RetentionPolicy::Limits,
        storage: StorageType::File,
        max_age: KEPT,
        duplicate_window: SAME,
        ..stream::Config::default()
    };
    for config in [jobs, outcomes] {
        let made = context.get_or_create_stream(config).await;
        made.map_err(|error| error.to_string())?;
    }
    let made = context.get_object_store(STORE).await;
    if let Ok(store) = made {
        return Ok(store);
    }
    let config = object_store::Config {
        bucket: STORE.into(),
        description: Some("subjects of raddle, by digest".into()),
        storage: StorageType::File,
        ..object_store::Config::default()
    };
    let made = context.create_object_store(config).await;
    made.map_err(|error| error.to_string())
}
