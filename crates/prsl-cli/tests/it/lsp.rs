//! `prsl lsp`: the real command, over its standard input and output.

mod client;

use std::fmt::Write as _;

use serde_json::{Value, json};

use self::client::{Client, URI};
use crate::runner::{Folder, WAREHOUSE};

fn everything() -> Value {
    json!({
        "general": {"positionEncodings": ["utf-32", "utf-16"]},
        "textDocument": {
            "hover": {"contentFormat": ["markdown", "plaintext"]},
            "publishDiagnostics": {"relatedInformation": true},
        },
    })
}

fn range(start: [u64; 2], end: [u64; 2]) -> Value {
    let position = |[line, character]: [u64; 2]| json!({"line": line, "character": character});
    json!({"start": position(start), "end": position(end)})
}

/// The texts of completions.
fn texts(completions: &Value) -> Vec<&str> {
    let items = completions["items"].as_array().expect("a list of items");
    items.iter().map(|item| item["textEdit"]["newText"].as_str().expect("a text")).collect()
}

fn hover(client: &mut Client, text: &str, part: &str) -> String {
    let hover = client.ask_at("textDocument/hover", text, part, 1);
    hover["contents"]["value"].as_str().unwrap_or_else(|| panic!("{hover}")).to_owned()
}

#[test]
fn a_session_from_errors_to_a_formatted_model() {
    let (mut client, capabilities) = Client::initialized("--stdio", everything());
    assert_eq!(capabilities["positionEncoding"], "utf-16");
    assert_eq!(capabilities["documentFormattingProvider"], true);

    let broken = "label feet: gait, standing\nlabel hands: high, low\nrule 0.8: high -> standin\nexpect high => standing > 0.9\n";
    let published = client.open(broken);
    assert_eq!((&published["uri"], &published["version"]), (&json!(URI), &json!(1)));
    assert_eq!(
        published["diagnostics"],
        json!([{
            "range": range([2, 18], [2, 25]),
            "severity": 1,
            "code": "syntax",
            "source": "prsl",
            "message": "unknown category `standin`\ndid you mean `standing`?",
        }])
    );
    assert_eq!(
        hover(&mut client, broken, "feet"),
        "```text\nlabel feet\n  gait\n  standing\nno marginal: the text has errors\n```"
    );
    let edits = json!({"textDocument": {"uri": URI}, "options": {"tabSize": 4, "insertSpaces": true}});
    assert_eq!(client.ask("textDocument/formatting", edits.clone()), Value::Null);

    let published = client.change(2, json!([{"range": range([2, 25], [2, 25]), "text": "g "}]));
    let [failed] = &published["diagnostics"].as_array().expect("a list")[..] else { panic!("{published}") };
    assert_eq!((&published["version"], &failed["code"]), (&json!(2), &json!("failed-expectation")));
    assert_eq!(failed["range"], range([3, 0], [3, 29]));
    let message = failed["message"].as_str().expect("a message");
    assert!(message.starts_with("expected `standing` > 0.9, found 0.8"), "{message}");
    assert!(message.contains("the rules move `standing` from 0.500 to 0.800"), "{message}");

    let formatted = client.ask("textDocument/formatting", edits.clone());
    let edit = json!([{"range": range([2, 0], [3, 0]), "newText": "rule 0.8: high -> standing\n"}]);
    assert_eq!(formatted, edit);
    let change = json!([{"range": formatted[0]["range"], "text": formatted[0]["newText"]}]);
    client.change(3, change);
    assert_eq!(client.ask("textDocument/formatting", edits), json!([]));

    client.notify("textDocument/didClose", json!({"textDocument": {"uri": URI}}));
    assert_eq!(client.diagnostics(), json!({"uri": URI, "diagnostics": []}));
    assert_eq!(client.ask("shutdown", Value::Null), Value::Null);
    assert_eq!(client.refused("textDocument/hover", json!({})), -32600);
    client.notify("exit", Value::Null);
    assert_eq!(client.close(), Some(0));
}

#[test]
fn hovers_have_marginals_sentences_and_costs() {
    let (mut client, _) = Client::initialized("", everything());
    assert_eq!(client.open(WAREHOUSE)["diagnostics"], json!([]));
    let model = prsl::Model::parse(WAREHOUSE).expect("a model");
    let posterior = model.infer(&prsl::Evidence::new()).expect("possible");
    let feet = posterior.marginal(model.find_label("feet").expect("a label"));
    let expected = format!(
        "```text\nlabel feet, from shoe_sensor\nwithout evidence:\n  gait      {:.4}\n  standing  {:.4}\n```",
        feet[0], feet[1]
    );
    // The label itself, its declared category, and its category in a rule.
    for part in ["feet:", "gait,", "standing ->"] {
        assert_eq!(hover(&mut client, WAREHOUSE, part), expected, "{part}");
    }
    let rule = hover(&mut client, WAREHOUSE, "rule 0.8");
    assert!(rule.starts_with("```text\nrule 1: if high and standing then overhead, 0.8\n"), "{rule}");
    assert!(
        rule.contains("\ninference by junction tree: ") && rule.contains("multiply-adds a row"),
        "{rule}"
    );
    assert_eq!(hover(&mut client, WAREHOUSE, "overhead_work"), rule);
    assert_eq!(client.ask_at("textDocument/hover", WAREHOUSE, "#", 1), Value::Null);
}

#[test]
fn completions_fit_their_place() {
    let (mut client, _) = Client::initialized("", json!({}));
    let text = "label feet: gait, standing\nlabel \"two hands\": high, low\nru\nrule 0.8: feet=\nrule 0.9: st -> \ncalibrate feet \nexpect => \n";
    client.open(text);
    let mut complete = |part: &str, after: u64| client.ask_at("textDocument/completion", text, part, after);
    let statements = complete("ru\n", 2);
    assert_eq!(texts(&statements), prsl::editor::KEYWORDS.statements);
    assert_eq!(statements["items"][3]["textEdit"]["range"], range([2, 0], [2, 2]));
    assert_eq!(texts(&complete("feet=\n", 5)), ["gait", "standing"]);
    let names = complete("st ->", 2);
    assert_eq!(texts(&names)[..6], ["feet", "gait", "standing", "\"two hands\"", "high", "low"]);
    assert!(texts(&names).contains(&"at_most") && !texts(&names).contains(&"rule"));
    assert_eq!(names["items"][0]["detail"], "gait, standing");
    assert_eq!((&names["items"][1]["detail"], &names["items"][1]["kind"]), (&json!("feet"), &json!(20)));
    assert_eq!(names["items"][3]["filterText"], "two hands");
    assert_eq!(texts(&complete("calibrate feet \n", 15)), prsl::editor::KEYWORDS.calibrators);
    assert!(texts(&complete("expect => \n", 10)).contains(&"mpe"));
}

#[test]
fn formatting_gives_the_text_of_fmt() {
    let text = "label  a   # first\nlabel b # ünd\n\n\n\nrule 0.9 :a->   b#why\n  ";
    let folder = Folder::new(&[("m.prsl", text)]);
    let expected = folder.prsl("fmt m.prsl").done().stdout;
    for encoding in ["utf-8", "utf-16"] {
        let (mut client, _) = Client::initialized("", json!({"general": {"positionEncodings": [encoding]}}));
        client.open(text);
        let edits = client.ask("textDocument/formatting", json!({"textDocument": {"uri": URI}}));
        client.change(2, json!([{"range": edits[0]["range"], "text": edits[0]["newText"]}]));
        assert_eq!(client.ask("textDocument/formatting", json!({"textDocument": {"uri": URI}})), json!([]));
        // The same text, as the client would have it: nothing is left to change if it is replaced.
        client.change(3, json!([{"text": expected}]));
        assert_eq!(client.ask("textDocument/formatting", json!({"textDocument": {"uri": URI}})), json!([]));
    }
}

#[test]
fn positions_are_counted_as_agreed() {
    let text = "label größe: 😀x, y\n";
    let unknown = "label \"grö😀ße\": x, y\nrule 0.9: \"grö😀ße\"=x & z\n";
    for (encoding, start) in [("utf-16", 24), ("utf-8", 28)] {
        let (mut client, capabilities) =
            Client::initialized("", json!({"general": {"positionEncodings": ["utf-32", encoding]}}));
        assert_eq!(capabilities["positionEncoding"], encoding);
        let published = client.open(unknown);
        assert_eq!(published["diagnostics"][0]["range"], range([1, start], [1, start + 1]), "{encoding}");
        let changes = json!([{"range": range([1, start - 3], [1, start + 1]), "text": ""}]);
        assert_eq!(client.change(2, changes)["diagnostics"], json!([]));
        assert_ne!(client.change(3, json!([{"text": text}]))["diagnostics"], json!([]));
    }
}

#[test]
fn the_session_has_a_beginning_and_an_end() {
    let mut client = Client::start("");
    assert_eq!(client.refused("textDocument/hover", json!({})), -32002);
    client.ask("initialize", json!({"capabilities": {}}));
    assert_eq!(client.refused("initialize", json!({"capabilities": {}})), -32600);
    assert_eq!(client.refused("textDocument/definition", json!({})), -32601);
    client.notify("workspace/didChangeConfiguration", json!({"settings": {}}));
    assert_eq!(client.refused("textDocument/hover", json!({"position": 3})), -32602);
    let at = json!({"textDocument": {"uri": "file:///closed"}, "position": {"line": 0, "character": 0}});
    assert_eq!(client.refused("textDocument/completion", at), -32602);
    client.notify("exit", Value::Null);
    assert_eq!(client.close(), Some(1));
    // An editor that dies says nothing.
    assert_eq!(Client::initialized("", json!({})).0.close(), Some(1));
}

#[test]
fn what_is_no_message_is_answered_and_does_no_harm() {
    let (mut client, _) = Client::initialized("", json!({}));
    let mut answer = |bytes: &[u8]| {
        client.send_raw(bytes);
        let answer = client.receive();
        (answer["id"].clone(), answer["error"]["code"].as_i64().unwrap_or_default())
    };
    assert_eq!(answer(b"Content-Length: 5\r\n\r\n{\"id\""), (Value::Null, -32700));
    assert_eq!(answer(b"Content-Length: 2\r\n\r\n\xff\xfe"), (Value::Null, -32700));
    assert_eq!(answer(b"Content-Length: 2\r\n\r\n[]"), (Value::Null, -32600));
    assert_eq!(
        answer(b"Content-Length: 21\r\n\r\n{\"id\":7,\"method\":true}"[..43].as_ref()),
        (Value::Null, -32700)
    );
    assert_eq!(answer(b"Content-Length: 22\r\n\r\n{\"id\":7,\"method\":true}"), (json!(7), -32600));
    assert_eq!(answer(b"Content-Type: text\r\n\r\n"), (Value::Null, -32700));
    assert_eq!(answer(b"Content-Length: -1\r\n\r\n"), (Value::Null, -32700));
    let deep = format!("Content-Length: 100000\r\n\r\n{}", "[".repeat(100_000));
    assert_eq!(answer(deep.as_bytes()), (Value::Null, -32700));
    assert_eq!(client.open(WAREHOUSE)["diagnostics"], json!([]));
}

/// Labels in a grid whose neighbors differ, for which exact inference is too costly, with many expectations.
fn costly(side: usize) -> String {
    let mut text = String::new();
    for (y, x) in (0..side * side).map(|at| (at / side, at % side)) {
        let _ = writeln!(text, "label l{x}_{y}");
    }
    for (y, x) in (0..side * side).map(|at| (at / side, at % side)).filter(|&(_, x)| x > 0) {
        let _ = writeln!(text, "rule 0.7: l{x}_{y} xor l{0}_{y}\nrule 0.7: l{y}_{x} xor l{y}_{0}", x - 1);
    }
    text + &"expect => l0_0 & l1_0 > 0.9\nexpect => l0_0 > 0.9\n".repeat(100)
}

#[test]
fn a_costly_model_is_not_computed_exactly() {
    let (mut client, _) = Client::initialized("", json!({}));
    let text = costly(30);
    let diagnostics = client.open(&text)["diagnostics"].clone();
    let codes: Vec<&Value> = diagnostics.as_array().expect("a list").iter().map(|it| &it["code"]).collect();
    assert!(codes.iter().all(|code| **code == "not-checked"), "{codes:?}");
    assert_eq!(codes.len(), 200);
    let label = hover(&mut client, &text, "l3_4");
    assert!(label.starts_with("label l3_4\nwithout evidence, approximately:\n  yes  0.5000\n"), "{label}");
    let rule = hover(&mut client, &text, "rule");
    assert!(rule.contains("\ninference by loopy: "), "{rule}");
}

#[test]
fn there_are_at_most_500_diagnostics() {
    let (mut client, _) = Client::initialized("", json!({}));
    let text = "label a\nlabel b\n".to_owned() + &"rule 0.5: a -> b\n".repeat(600);
    let diagnostics = client.open(&text)["diagnostics"].clone();
    assert_eq!(diagnostics.as_array().map(Vec::len), Some(500));
}

#[test]
fn without_memory_marginals_are_approximate() {
    let (mut client, _) = Client::initialized("--memory 1", json!({}));
    let text = "label a\nlabel b\nrule 0.9: a -> b\n";
    client.open(text);
    let label = hover(&mut client, text, " a");
    assert!(label.starts_with("label a\nwithout evidence, approximately:\n"), "{label}");
    let rule = hover(&mut client, text, "rule");
    assert!(
        rule.contains("\ninference by loopy: ") && rule.contains("more than the limit of 1 bytes"),
        "{rule}"
    );
}
