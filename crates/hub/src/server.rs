//! The configuration of a hub: a stock nats-server with JetStream and files.

use std::path::{Path, PathBuf};

/// What a hub is to be like.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// `address:port` on which it listens.
    pub listen: String,
    pub folder: PathBuf,
    /// Bytes on disk at most.
    pub store_bytes: u64,
    /// The only one who may come in: a name and a password, or its bcrypt hash.
    pub user: Option<(String, String)>,
    /// The public nkey of the only one who may come in.
    pub nkey: Option<String>,
    /// Certificate and key.
    pub tls: Option<(PathBuf, PathBuf)>,
}

impl ServerOptions {
    /// The text of the configuration.
    ///
    /// # Errors
    /// A word cannot be written down there.
    pub fn configuration(&self) -> Result<String, String> {
        let mut text = String::from("# Written by `raddle hub`.\n");
        let mut line = |key: &str, value: String| {
            text.push_str(&format!("{key}: {value}\n"));
        };
        line("listen", quoted(&self.listen)?);
        line("server_name", quoted("raddle")?);
        // Outcomes of long schedules are large.
        line("max_payload", "8MB".into());
        line("max_pending", "64MB".into());
        let folder = quoted(path_text(&self.folder)?)?;
        let store = self.store_bytes;
        line(
            "jetstream",
            format!("{{ store_dir: {folder}, max_file_store: {store}, max_memory_store: 0 }}"),
        );
        match (&self.user, &self.nkey) {
            (Some((user, password)), _) => {
                let (user, password) = (quoted(user)?, quoted(password)?);
                line(
                    "authorization",
                    format!("{{ user: {user}, password: {password} }}"),
                );
            }
            (None, Some(key)) => {
                let key = quoted(key)?;
                line(
                    "authorization",
                    format!("{{ users: [ {{ nkey: {key} }} ] }}"),
                );
            }
            (None, None) => {}
        }
        if let Some((certificate, key)) = &self.tls {
            let certificate = quoted(path_text(certificate)?)?;
            let key = quoted(path_text(key)?)?;
            line(
                "tls",
                format!("{{ cert_file: {certificate}, key_file: {key} }}"),
            );
        }
        Ok(text)
    }
}

fn path_text(path: &Path) -> Result<&str, String> {
    let text = path.to_str();
    text.ok_or_else(|| format!("`{}` is not UTF-8", path.display()))
}

fn quoted(text: &str) -> Result<String, String> {
    let is_plain = |character: char| !character.is_control() && !matches!(character, '"' | '\\');
    if text.chars().all(is_plain) {
        Ok(format!("\"{text}\""))
    } else {
        Err(format!(
            "`{}` has characters that the configuration of nats-server cannot hold",
            text.escape_default()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_cannot_leave_their_quotes() {
        let mut options = ServerOptions {
            listen: "127.0.0.1:4222".into(),
            folder: "/srv/hub".into(),
            store_bytes: 1 << 30,
            user: Some(("director".into(), "secret".into())),
            nkey: None,
            tls: None,
        };
        let text = options.configuration().unwrap();
        assert!(text.contains("listen: \"127.0.0.1:4222\"\n"), "{text}");
        assert!(
            text.contains("authorization: { user: \"director\", password: \"secret\" }"),
            "{text}"
        );
        options.user = Some(("a\" }\nlisten: \"0.0.0.0".into(), String::new()));
        options.configuration().unwrap_err();
    }
}
