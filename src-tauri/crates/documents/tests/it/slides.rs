//! Presentations of PowerPoint, and archives that only claim to be one.

use documents::{read, DocumentKind};

use crate::hostile::{broken, too_large};
use crate::make::{archive, bomb};

const TYPES: &[u8] =
    b"<Types><Default Extension=\"xml\" ContentType=\"application/xml\"/><Override PartName=\"/ppt/presentation.xml\" \
    ContentType=\"application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml\"/></Types>";
const ROLE: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

/// The relations of a part: names, roles and targets.
fn relations(of: &[(&str, &str, &str)]) -> String {
    let of: String = of
        .iter()
        .map(|(id, role, target)| format!("<Relationship Id=\"{id}\" Type=\"{ROLE}/{role}\" Target=\"{target}\"/>"))
        .collect();
    format!("<Relationships>{of}</Relationships>")
}

/// A presentation that shows these slides of its relations.
fn presentation(order: &[&str]) -> String {
    let order: String = order
        .iter()
        .enumerate()
        .map(|(at, id)| format!("<p:sldId id=\"{}\" r:id=\"{id}\"/>", 256 + at))
        .collect();
    format!("<p:presentation xmlns:p=\"p\" xmlns:r=\"r\"><p:sldIdLst>{order}</p:sldIdLst></p:presentation>")
}

fn shape(role: &str, paragraphs: &str) -> String {
    format!("<p:sp><p:nvSpPr><p:nvPr>{role}</p:nvPr></p:nvSpPr><p:txBody>{paragraphs}</p:txBody></p:sp>")
}

fn paragraph(text: &str) -> String {
    format!("<a:p><a:r><a:t>{text}</a:t></a:r></a:p>")
}

/// A presentation of these parts beside its list.
fn slides(order: &[&str], named: &str, parts: &[(&str, &str)]) -> Vec<u8> {
    let list = presentation(order);
    let mut all: Vec<(&str, &[u8])> = vec![
        ("[Content_Types].xml", TYPES),
        ("ppt/presentation.xml", list.as_bytes()),
        ("ppt/_rels/presentation.xml.rels", named.as_bytes()),
    ];
    all.extend(parts.iter().map(|(name, part)| (*name, part.as_bytes())));
    archive(&all)
}

#[test]
fn slides_are_read_as_they_are_shown_with_their_notes() {
    let title = shape("<p:ph type=\"title\"/>", &paragraph("Tea &amp; milk"));
    let items = [
        paragraph("Water"),
        "<a:p><a:pPr lvl=\"1\"/><a:r><a:t>hot</a:t></a:r><a:r><a:t>, or so</a:t></a:r></a:p>".to_owned(),
        "<a:p><a:pPr><a:buNone/></a:pPr><a:r><a:t>Plain</a:t><a:br/></a:r></a:p><a:p/>".to_owned(),
    ]
    .concat();
    let cell = |text: &str| format!("<a:tc><a:txBody>{}</a:txBody></a:tc>", paragraph(text));
    let table = format!(
        "<p:graphicFrame><a:tbl><a:tr>{}{}</a:tr></a:tbl></p:graphicFrame>",
        cell("x"),
        cell("y")
    );
    let number = shape(
        "<p:ph type=\"sldNum\"/>",
        "<a:p><a:fld type=\"slidenum\"><a:t>7</a:t></a:fld></a:p>",
    );
    let first = [title, shape("<p:ph idx=\"1\"/>", &items), table, number].concat();
    let first = format!("<p:sld xmlns:a=\"a\" xmlns:p=\"p\"><p:cSld><p:spTree>{first}</p:spTree></p:cSld></p:sld>");
    let second = format!(
        "<p:sld show=\"0\" xmlns:a=\"a\" xmlns:p=\"p\">{}</p:sld>",
        shape("", &paragraph("Box"))
    );
    let notes = [
        shape("<p:ph type=\"sldImg\"/>", ""),
        shape(
            "<p:ph type=\"body\"/>",
            &[paragraph("Pour."), paragraph("Wait.")].concat(),
        ),
        shape("<p:ph type=\"sldNum\"/>", &paragraph("1")),
    ]
    .concat();
    let notes = format!("<p:notes xmlns:a=\"a\" xmlns:p=\"p\">{notes}</p:notes>");
    let named = relations(&[
        ("rId1", "slide", "slides/slide2.xml"),
        ("rId2", "slide", "/ppt/slides/slide1.xml"),
        ("rId3", "slideMaster", "slideMasters/slideMaster1.xml"),
    ]);
    let of_first = relations(&[("rId1", "notesSlide", "../notesSlides/notesSlide1.xml")]);
    let file = slides(
        &["rId2", "rId1", "rId2"],
        &named,
        &[
            ("ppt/slides/slide1.xml", &first),
            ("ppt/slides/_rels/slide1.xml.rels", &of_first),
            ("ppt/slides/slide2.xml", &second),
            ("ppt/notesSlides/notesSlide1.xml", &notes),
        ],
    );
    let document = read(file, "tea").unwrap();
    assert_eq!(document.kind, DocumentKind::Pptx);
    assert_eq!(
        document.text,
        "## Slide 1\n\n### Tea & milk\n\n- Water\n  - hot, or so\n\nPlain\n\n| x | y |\n\nNotes: Pour.\n\nWait.\n\n\
        ## Slide 2 (hidden)\n\nBox"
    );
}

#[test]
fn presentations_that_unfold_lie_or_lack_parts() {
    let list = presentation(&["a"]);
    let named = relations(&[("a", "slide", "slides/a.xml")]);
    let parts: [(&str, &[u8]); 3] = [
        ("[Content_Types].xml", TYPES),
        ("ppt/presentation.xml", list.as_bytes()),
        ("ppt/_rels/presentation.xml.rels", named.as_bytes()),
    ];
    too_large("bomb.pptx", bomb(&parts, "ppt/slides/a.xml"));
    broken("slide.pptx", slides(&["a"], &named, &[]));
    broken("relation.pptx", slides(&["b"], &named, &[]));
    broken("main.pptx", archive(&[("[Content_Types].xml", TYPES)]));
    let out = relations(&[("a", "slide", "../../../etc/passwd")]);
    broken("out.pptx", slides(&["a"], &out, &[]));
    let many = vec![("a", "slide", "slides/a.xml"); 10_001];
    broken("many.pptx", slides(&["a"], &relations(&many), &[]));
    broken(
        "deep.pptx",
        slides(&["a"], &named, &[("ppt/slides/a.xml", &"<a>".repeat(310_000))]),
    );
    let entity = "<p:sld><a:p><a:t>&secret;</a:t></a:p></p:sld>";
    broken("entity.pptx", slides(&["a"], &named, &[("ppt/slides/a.xml", entity)]));
    let deep = format!(
        "{}<a:t>end</a:t>{}",
        "<a:tbl><a:tr><a:tc><a:p>".repeat(50_000),
        "</a:p></a:tc></a:tr></a:tbl>".repeat(50_000)
    );
    let read = read(
        slides(&["a"; 100_000], &named, &[("ppt/slides/a.xml", &deep)]),
        "deep.pptx",
    );
    assert!(read.unwrap().text.ends_with("end |"));
}
