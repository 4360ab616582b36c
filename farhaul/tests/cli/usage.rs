//! What is said to people who typed something else.

use crate::support::run;

#[test]
fn slips_are_answered_with_what_was_meant() {
    for (arguments, words) in [
        (&["ingset", "a"][..], "'ingest'"),
        (&["ingest", "a", "--too", "b"], "'--to'"),
        (&["ingest", "a", "--to", "b", "--on-error", "skp"], "'skip'"),
        (&["inspect", "a", "--orientation", "applz"], "'apply'"),
        (&["bench", "a", "--order", "stric"], "'strict'"),
        (&["bench", "a", "--memory", "5XB"], "512MB"),
        (&["bench", "a", "--prefetch", "adaptive"], "far stores"),
        (&["info", "embeded:/x"], "did you mean embedded:?"),
        (
            &["info", "casandra://u:secret@h/k/d"],
            "did you mean cassandra:?",
        ),
        (
            &["info", "cassandra://u:secret@h/k/d"],
            "the feature `cassandra`",
        ),
        (&["info", "C:\\data"], "Windows"),
        (
            &["info", "nowhere://x"],
            "this build has embedded:, folder:",
        ),
    ] {
        let ran = run(arguments).exits(2);
        assert!(ran.stderr.contains(words), "{words}: {ran:?}");
        assert!(
            ran.stdout.is_empty() && !ran.stderr.contains("secret"),
            "{ran:?}"
        );
        let ran = run(arguments.iter().chain(&["--json"])).exits(2);
        let error = ran.json()["error"].clone();
        let said = format!("{} {}", error["message"], error["hint"]);
        assert!(said.contains(words), "{words}: {error}");
        assert!(!ran.stdout.contains("secret"), "{ran:?}");
    }
}

#[test]
fn help_is_no_error_and_goes_to_stdout() {
    let ran = run(["--help"]).exits(0);
    assert!(ran.stdout.contains("Usage: farhaul") && ran.stderr.is_empty());
    assert!(
        run(["bench", "--help"])
            .exits(0)
            .stdout
            .contains("--think-ms")
    );
    assert!(run(["--version"]).exits(0).stdout.starts_with("farhaul "));
    assert!(run::<&str>([]).exits(2).stderr.contains("Usage: farhaul"));
}

#[test]
fn hints_stand_below_the_error() {
    let ran = run(["info", "embeded:/x"]).exits(2);
    assert_eq!(
        ran.stderr,
        "farhaul: open: no store has the scheme embeded:\n\
         hint: did you mean embedded:? this build has embedded:, folder:; a path with a colon in it is written ./NAME\n"
    );
}
