//! Texts, sheets and slides of OpenDocument, and archives that only claim to be one.

use documents::{read, DocumentKind, Error};

use crate::hostile::{broken, refusal, too_large};
use crate::make::{archive, bomb};

const TYPE: &str = "application/vnd.oasis.opendocument.";

fn file(kind: &str, body: &str) -> Vec<u8> {
    let kind = format!("{TYPE}{kind}");
    let content = format!(
        "<?xml version=\"1.0\"?><office:document-content xmlns:office=\"o\" xmlns:text=\"t\" xmlns:table=\"ta\" \
        xmlns:draw=\"d\" xmlns:presentation=\"p\" xmlns:svg=\"s\"><office:body>{body}</office:body></office:document-content>"
    );
    archive(&[("mimetype", kind.as_bytes()), ("content.xml", content.as_bytes())])
}

#[test]
fn texts_keep_their_headings_lists_tables_and_notes() {
    let cell = |text: &str| format!("<table:table-cell><text:p>{text}</text:p></table:table-cell>");
    let item = |text: &str| format!("<text:list-item><text:p>{text}</text:p></text:list-item>");
    let body = [
        "<text:tracked-changes><text:p>gone</text:p></text:tracked-changes>",
        "<text:h text:outline-level=\"2\">Tea &amp; milk</text:h><text:p/>",
        "<text:p>One <text:span>word</text:span><text:note><text:note-citation>1</text:note-citation><text:note-body>\
            <text:p>Hot.</text:p></text:note-body></text:note><text:line-break/>more\n   <text:s text:c=\"2\"/>words\
            <office:annotation><text:p>remark</text:p></office:annotation></text:p>",
        &format!(
            "<text:list>{}<text:list-item><text:p>b</text:p><text:list>{}</text:list></text:list-item></text:list>",
            item("a"),
            item("c")
        ),
        "<text:list><text:list-item><text:p/></text:list-item></text:list><text:p>Plain</text:p>",
        &format!(
            "<table:table><table:table-row>{}{}</table:table-row></table:table>",
            cell("x"),
            cell("y")
        ),
        "<text:p><draw:frame><svg:title>cup</svg:title><draw:image/></draw:frame>end</text:p>",
    ]
    .concat();
    let document = read(file("text", &body), "tea").unwrap();
    assert_eq!(document.kind, DocumentKind::Odt);
    assert_eq!(
        document.text,
        "## Tea & milk\n\nOne word[^1]\nmore   words\n\n- a\n- b\n  - c\n\nPlain\n\n| x | y |\n\nend\n\n[^1]: Hot."
    );
}

#[test]
fn sheets_repeat_what_they_say_and_nothing_without_letters() {
    let cell = |attributes: &str, text: &str| {
        format!("<table:table-cell {attributes}><text:p>{text}</text:p></table:table-cell>")
    };
    let rows = [
        format!("<table:table-row>{}{}</table:table-row>", cell("", "Name"), cell("", "Day")),
        "<table:table-row table:number-rows-repeated=\"9\"><table:table-cell table:number-columns-repeated=\"16384\"/></table:table-row>".to_owned(),
        format!(
            "<table:table-row table:number-rows-repeated=\"2\"><table:table-cell/>{}<table:covered-table-cell/>{}</table:table-row>",
            cell("table:number-columns-repeated=\"2\"", "5.3.24"),
            cell("", "two</text:p><text:p>lines")
        ),
        "<table:table-row table:number-rows-repeated=\"1048576\"><table:table-cell table:number-columns-repeated=\"16384\"/></table:table-row>".to_owned(),
    ]
    .concat();
    let body = format!("<office:spreadsheet><table:table table:name=\"Tea\">{rows}</table:table></office:spreadsheet>");
    let document = read(file("spreadsheet", &body), "tea.ods").unwrap();
    assert_eq!(document.kind, DocumentKind::Ods);
    let line = "\t5.3.24\t5.3.24\t\ttwo lines\n";
    assert_eq!(document.text, format!("## Tea\n\nName\tDay\n\n{line}{line}"));
}

#[test]
fn slides_are_read_with_their_notes() {
    let frame = |class: &str, text: &str| {
        format!("<draw:frame presentation:class=\"{class}\"><draw:text-box>{text}</draw:text-box></draw:frame>")
    };
    let list = "<text:list><text:list-item><text:p>Water</text:p></text:list-item></text:list>";
    let body = format!(
        "<draw:page>{}{}<presentation:notes><draw:page-thumbnail/>{}</presentation:notes></draw:page><draw:page>{}</draw:page>",
        frame("title", "<text:p>Tea</text:p>"),
        frame("outline", list),
        frame("notes", "<text:p/><text:p>Pour.</text:p>"),
        frame("title", "<text:p/>") + &frame("", "<text:p>Box</text:p>")
    );
    let document = read(file("presentation-template", &body), "tea.odp").unwrap();
    assert_eq!(document.kind, DocumentKind::Odp);
    assert_eq!(
        document.text,
        "## Slide 1\n\n### Tea\n\n- Water\n\nNotes: Pour.\n\n## Slide 2\n\nBox"
    );
}

#[test]
fn open_documents_that_unfold_lie_or_lack_parts() {
    let kind = format!("{TYPE}text");
    too_large("bomb.odt", bomb(&[("mimetype", kind.as_bytes())], "content.xml"));
    broken("bare.odt", archive(&[("mimetype", kind.as_bytes())]));
    broken("deep.odt", file("text", &"<a>".repeat(310_000)));
    broken("entity.odt", file("text", "<text:p>&secret;</text:p>"));
    let many = |rows: &str, cells: &str| {
        format!(
            "<table:table><table:table-row table:number-rows-repeated=\"{rows}\"><table:table-cell \
            table:number-columns-repeated=\"{cells}\"><text:p>7</text:p></table:table-cell></table:table-row></table:table>"
        )
    };
    too_large("rows.ods", file("spreadsheet", &many("18446744073709551615", "1000")));
    broken("columns.ods", file("spreadsheet", &many("1", "18446744073709551615")));
    let far = "<table:table><table:table-row><table:table-cell table:number-columns-repeated=\"18446744073709551615\"/>\
        <table:table-cell table:number-columns-repeated=\"18446744073709551615\"/><table:table-cell><text:p>7</text:p></table:table-cell>\
        </table:table-row></table:table>";
    broken("far.ods", file("spreadsheet", far));
    let million = "<table:table-cell><text:p>7</text:p></table:table-cell>".repeat(1_000);
    let million = format!("<table:table-row>{million}</table:table-row>").repeat(100);
    let text = read(
        file("spreadsheet", &format!("<table:table>{million}</table:table>")),
        "a.ods",
    )
    .unwrap()
    .text;
    assert_eq!(text.matches('7').count(), 100_000);
    let spaces = "<text:s text:c=\"18446744073709551615\"/>".repeat(110_000);
    too_large("spaces.odt", file("text", &format!("<text:p>a{spaces}</text:p>")));
    let deep = format!("{}<text:p>end", "<text:list><text:list-item>".repeat(100_000));
    let deep = format!("{deep}</text:p>{}", "</text:list-item></text:list>".repeat(100_000));
    assert!(read(file("text", &deep), "deep.odt").unwrap().text.ends_with("- end"));
    let manifest = b"<manifest:manifest><manifest:file-entry><manifest:encryption-data/></manifest:file-entry></manifest:manifest>";
    let locked = archive(&[
        ("mimetype", kind.as_bytes()),
        ("META-INF/manifest.xml", manifest),
        ("content.xml", b"\x01\x02"),
    ]);
    assert_eq!(refusal("locked.odt", locked), Error::Protected("OpenDocument".into()));
    let formula = format!("{TYPE}formula");
    let error = refusal(
        "formula.odf",
        archive(&[("mimetype", formula.as_bytes()), ("content.xml", b"<math/>")]),
    );
    assert!(matches!(error, Error::UnknownKind { .. }), "{error}");
}
