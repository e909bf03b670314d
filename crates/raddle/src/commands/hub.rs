//! `raddle hub`: writes the configuration of a nats-server, and starts it.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, anyhow};
use clap::Args;
use raddle_hub::server::ServerOptions;

use crate::exit::{Code, Failure};
use crate::{keep, message, units};

/// Start a hub for campaigns over several machines: a nats-server with JetStream.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  raddle hub --store /srv/raddle-hub\n  raddle hub --listen 0.0.0.0:4222 --user raddle:SECRET --tls-cert hub.pem --tls-key hub.key\n\nAny other nats-server with JetStream is a hub, too."
)]
pub(crate) struct RunHub {
    /// Where it listens.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:4222")]
    listen: String,
    /// Folder for its configuration and everything it keeps.
    #[arg(long, value_name = "DIR", default_value = "raddle-hub")]
    store: PathBuf,
    /// Size of what it keeps at most, in MiB, or with M or G.
    #[arg(long, value_name = "SIZE", default_value = "16G", value_parser = units::mebibytes)]
    store_size: u64,
    /// Let in only this user; the password may be a bcrypt hash.
    #[arg(long, value_name = "NAME:PASSWORD", conflicts_with = "nkey")]
    user: Option<String>,
    /// Let in only the owner of this public nkey (U...).
    #[arg(long, value_name = "KEY")]
    nkey: Option<String>,
    /// Its certificate, for tls:// addresses.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of that certificate.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Only show the configuration.
    #[arg(long)]
    print: bool,
}

/// The server.
const SERVER: &str = "nats-server";

impl RunHub {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        let folder = std::path::absolute(&self.store)?;
        let user = match &self.user {
            None => None,
            Some(text) => match text.split_once(':') {
                Some((name, password)) => Some((name.to_owned(), password.to_owned())),
                None => return Err(anyhow!("`--user {text}` is not NAME:PASSWORD").into()),
            },
        };
        let absolute = |file: &Option<PathBuf>| file.as_ref().map(std::path::absolute).transpose();
        let options = ServerOptions {
            listen: self.listen.clone(),
            folder: folder.join("jetstream"),
            store_bytes: self.store_size << 20,
            user,
            nkey: self.nkey.clone(),
            tls: absolute(&self.tls_cert)?.zip(absolute(&self.tls_key)?),
        };
        let text = options.configuration().map_err(|error| anyhow!(error))?;
        if self.print {
            message::result(&text)?;
            return Ok(Code::Clean);
        }
        if self.is_open() {
            message::warning(
                "all machines that reach this address can read the programs that are explored and give work to all workers: use --user or --nkey, and TLS",
            );
        }
        Err(start(&folder, &text).into())
    }

    /// Whether others than this machine come in without a word.
    fn is_open(&self) -> bool {
        let address = self.listen.rsplit_once(':').map_or("", |(host, _)| host);
        let is_local = matches!(address, "127.0.0.1" | "localhost" | "[::1]");
        !is_local && self.user.is_none() && self.nkey.is_none()
    }
}

/// Becomes the server; comes back only if that fails.
fn start(folder: &std::path::Path, text: &str) -> anyhow::Error {
    let configuration = folder.join("nats-server.conf");
    let written = std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make {}", folder.display()))
        .and_then(|()| keep::write_secret(&configuration, text.as_bytes()));
    if let Err(error) = written {
        return error;
    }
    let error = Command::new(SERVER).arg("-c").arg(&configuration).exec();
    if error.kind() == std::io::ErrorKind::NotFound {
        return anyhow!(
            "{SERVER} is not there: install it (Debian: `apt install nats-server`); its configuration is {}",
            configuration.display()
        );
    }
    anyhow::Error::from(error).context(format!("cannot start {SERVER}"))
}
