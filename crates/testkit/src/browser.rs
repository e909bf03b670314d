//! A headless Chromium, driven as people drive it: keys, clicks, paper.
//!
//! By the WebDriver protocol of chromedriver, which is JSON over HTTP on this machine's own address.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::target;

/// A browser with one page open.
#[derive(Debug)]
pub struct Browser {
    driver: Child,
    /// Where the session's commands go.
    session: String,
    agent: ureq::Agent,
}

/// Keys that have no letter, as WebDriver names them.
#[derive(Debug, Clone, Copy)]
pub enum Key {
    Down,
    Up,
    Letter(char),
}

impl Browser {
    /// # Panics
    /// Without Chromium and its driver.
    pub fn start() -> Self {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver starts: `cargo xtask setup` installs it");
        let said = BufReader::new(driver.stdout.take().expect("it is piped")).lines();
        let port = said
            .map_while(Result::ok)
            .find_map(|line| {
                let (_, port) = line.split_once("successfully on port ")?;
                port.trim_end_matches('.').parse::<u16>().ok()
            })
            .expect("chromedriver says on which port it listens");
        let config = ureq::Agent::config_builder().http_status_as_error(false);
        let mut browser = Self {
            driver,
            session: format!("http://127.0.0.1:{port}/session"),
            agent: config.build().into(),
        };
        let options = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--window-size=1280,900",
        ];
        let asked = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": { "args": options },
            "goog:loggingPrefs": { "browser": "ALL" },
        } } });
        let made = browser.post("", &asked);
        let id = made["sessionId"].as_str().expect("a session has an id");
        browser.session = format!("{}/{id}", browser.session);
        browser
    }

    fn post(&self, command: &str, body: &Value) -> Value {
        let address = format!("{}{command}", self.session);
        let mut reply = self
            .agent
            .post(&address)
            .send_json(body)
            .unwrap_or_else(|error| panic!("{address}: {error}"));
        let value: Value = reply.body_mut().read_json().expect("a reply is JSON");
        let value = value["value"].clone();
        assert!(value.get("error").is_none(), "{command}: {value:#}");
        value
    }

    /// Opens a page that needs no script to be drawn.
    pub fn open_drawn(&self, page: &Path) {
        let address = format!("file://{}", page.display());
        self.post("/url", &json!({ "url": address }));
    }

    /// Opens a page of ours and waits until its script has drawn it.
    pub fn open(&self, page: &Path) {
        self.open_drawn(page);
        self.post("/timeouts", &json!({ "script": 60_000 }));
        let wait = "const done = arguments[0];
            const look = () => document.documentElement.dataset.drawn || document.querySelector('[role=alert]')
              ? done() : setTimeout(look, 10);
            look();";
        self.post("/execute/async", &json!({ "script": wait, "args": [] }));
    }

    /// What a function body returns in the page.
    pub fn evaluate(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Presses keys, one after the other.
    pub fn press(&self, keys: &[Key]) {
        let named = |key: &Key| match key {
            Key::Down => '\u{E015}',
            Key::Up => '\u{E013}',
            Key::Letter(letter) => *letter,
        };
        let pressed = keys.iter().map(named).flat_map(|key| {
            ["keyDown", "keyUp"].map(|what| json!({ "type": what, "value": key.to_string() }))
        });
        let actions: Vec<Value> = pressed.collect();
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": actions });
        self.post("/actions", &json!({ "actions": [keyboard] }));
    }

    /// Clicks with the mouse on the first element that a CSS selector finds.
    pub fn click(&self, selector: &str) {
        let asked = json!({ "using": "css selector", "value": selector });
        let found = self.post("/element", &asked);
        let element = found.as_object().and_then(|found| found.values().next());
        let element = element.and_then(Value::as_str).expect("an element");
        self.post(&format!("/element/{element}/click"), &json!({}));
    }

    /// The page on paper: a PDF in base64.
    pub fn print(&self) -> String {
        let printed = self.post("/print", &json!({}));
        printed.as_str().expect("a PDF in base64").to_owned()
    }

    /// How wide the window is, and whether its user prefers dark colours.
    pub fn look(&self, width: u32, is_dark: bool) {
        let size = json!({ "width": width, "height": 900 });
        self.post("/window/rect", &size);
        let scheme = if is_dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        let asked =
            json!({ "cmd": "Emulation.setEmulatedMedia", "params": { "features": features } });
        self.post("/goog/cdp/execute", &asked);
    }

    /// What the browser has to complain about since the last time.
    pub fn complaints(&self) -> Vec<String> {
        let entries = self.post("/se/log", &json!({ "type": "browser" }));
        let entries = entries.as_array().cloned().unwrap_or_default();
        entries.iter().map(Value::to_string).collect()
    }

    /// What the accessibility checker axe finds wrong with the page as it is now: rule and elements, a line each.
    ///
    /// # Panics
    /// If axe is not here.
    pub fn inaccessible(&self) -> Vec<String> {
        let axe = target().join("npm/axe.min.js");
        let axe = std::fs::read_to_string(&axe).unwrap_or_else(|error| {
            panic!("{}: {error}; `cargo xtask setup` gets it", axe.display())
        });
        self.evaluate(&axe);
        let run = "const done = arguments[0];
            axe.run(document).then((found) => done(found.violations.map((one) =>
              `${one.id} (${one.impact}): ${one.help}: ${one.nodes.map((node) => node.html).join(' | ')}`)),
              (error) => done([String(error)]));";
        let found = self.post("/execute/async", &json!({ "script": run, "args": [] }));
        let found = found.as_array().cloned().unwrap_or_default();
        let line = |one: &Value| one.as_str().unwrap_or_default().to_owned();
        found.iter().map(line).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends its browser with the session; without a reply both go with the driver.
        drop(self.agent.delete(&self.session).call());
        drop(self.driver.kill());
        drop(self.driver.wait());
    }
}
