//! `raddle campaign` with the workers of a hub: the same rounds.

use raddle_testkit::{corpus, raddle, run, temporary};
use serde_json::Value;

use super::Hub;

#[test]
fn rounds_behind_a_hub_are_those_of_local_threads() {
    let hub = Hub::start();
    let _workers = [hub.worker("one"), hub.worker("two")];
    let folder = temporary();
    let program = corpus::build("apache/log_buffer", "buggy", folder.path());
    let text = format!(
        "round-schedules = 100\ncost = \"instructions\"\n[[subject]]\nname = \"log\"\nrun = [\"explore\", \"--\", \"{}\"]\n",
        program.display()
    );
    std::fs::write(folder.path().join("corpus.toml"), text).expect("a file");
    let told = |words: &[&str]| {
        let mut command = raddle();
        run(command
            .current_dir(folder.path())
            .arg("campaign")
            .args(words))
    };
    let shown = [&[][..], &["--hub", &hub.url]].map(|more| {
        told(&["create", "c", "corpus.toml"]).expect(0);
        told(&[&["resume", "c", "--rounds", "3"], more].concat()).expect(1);
        let ran = told(&["show", "c", "--json"]).expect(0);
        told(&["delete", "c"]).expect(0);
        let mut shown: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        shown["subjects"][0]["cpu_milliseconds"].take();
        shown
    });
    assert_eq!(shown[0], shown[1]);
    assert_eq!(shown[0]["rounds"], 3);
    let log = hub.log("one") + &hub.log("two");
    assert!(log.contains("is ready"), "{log}");
}
