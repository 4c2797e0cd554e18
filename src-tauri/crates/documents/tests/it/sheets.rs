//! Workbooks of Excel, and archives that only claim to be one.

use documents::{read, DocumentKind, Error};

use crate::hostile::{broken, refusal, too_large};
use crate::make::{archive, bomb};

const TYPES: &[u8] = b"<Types><Override PartName=\"/xl/workbook.xml\" \
    ContentType=\"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml\"/></Types>";
const WORKBOOK: &str = "<workbook xmlns:r=\"r\"><sheets><sheet name=\"Tea &amp; milk\" sheetId=\"1\" r:id=\"rId1\"/>\
    <sheet name=\"Chart\" sheetId=\"2\" r:id=\"rId4\"/><sheet name=\"Old\" sheetId=\"3\" state=\"hidden\" r:id=\"rId5\"/></sheets></workbook>";
const RELATIONS: &str =
    "<Relationships><Relationship Id=\"rId1\" Type=\"o/worksheet\" Target=\"worksheets/sheet1.xml\"/>\
    <Relationship Id=\"rId2\" Type=\"o/sharedStrings\" Target=\"sharedStrings.xml\"/>\
    <Relationship Id=\"rId3\" Type=\"o/styles\" Target=\"styles.xml\"/>\
    <Relationship Id=\"rId4\" Type=\"o/chartsheet\" Target=\"chartsheets/sheet1.xml\"/>\
    <Relationship Id=\"rId5\" Type=\"o/worksheet\" Target=\"worksheets/sheet2.xml\"/></Relationships>";
const STRINGS: &str =
    "<sst><si><t>Name</t></si><si><r><t>two\nli</t></r><r><t>nes</t></r><rPh><t>no</t></rPh></si></sst>";
const STYLES: &str = "<styleSheet><numFmts><numFmt numFmtId=\"164\" formatCode=\"yyyy\\-mm\\-dd\"/></numFmts>\
    <cellStyleXfs><xf numFmtId=\"9\"/></cellStyleXfs><cellXfs><xf numFmtId=\"0\"/><xf numFmtId=\"164\"/><xf numFmtId=\"10\"/></cellXfs></styleSheet>";

/// A workbook with these cells in its first sheet.
fn parts<'a>(first: &'a str, strings: &'a str) -> Vec<(&'a str, &'a [u8])> {
    vec![
        ("[Content_Types].xml", TYPES),
        ("xl/workbook.xml", WORKBOOK.as_bytes()),
        ("xl/_rels/workbook.xml.rels", RELATIONS.as_bytes()),
        ("xl/sharedStrings.xml", strings.as_bytes()),
        ("xl/styles.xml", STYLES.as_bytes()),
        ("xl/worksheets/sheet1.xml", first.as_bytes()),
        (
            "xl/worksheets/sheet2.xml",
            b"<worksheet><sheetData><row><c><v>1</v></c></row></sheetData></worksheet>",
        ),
    ]
}

fn workbook(rows: &str) -> Vec<u8> {
    let sheet = format!("<worksheet><sheetData>{rows}</sheetData></worksheet>");
    archive(&parts(&sheet, STRINGS))
}

#[test]
fn sheets_are_read_as_they_are_shown() {
    let rows = "<row r=\"2\"><c r=\"B2\" t=\"s\"><v>0</v></c><c r=\"D2\" t=\"s\"><v>1</v></c></row>\
        <row r=\"3\"><c r=\"A3\" s=\"1\"><v>45356</v></c><c r=\"B3\" s=\"2\"><v>0.125</v></c><c r=\"C3\" s=\"1\"/>\
        <c r=\"D3\"><f>SUM(A1:A2)</f><v>0.30000000000000004</v></c></row>\
        <row r=\"9\"><c t=\"b\"><v>1</v></c><c t=\"inlineStr\"><is><t>in</t></is></c><c t=\"e\"><v>#DIV/0!</v></c>\
        <c t=\"str\"><f>A1</f><v>words</v></c><c><f>B1*2</f></c></row><row r=\"10\"><c r=\"A10\" s=\"1\"/></row>";
    let document = read(workbook(rows), "tea.zip").unwrap();
    assert_eq!(document.kind, DocumentKind::Xlsx);
    assert_eq!(
        document.text,
        "## Tea & milk\n\n\tName\t\ttwo lines\n2024-03-05\t12.50%\t\t0.3\n\nTRUE\tin\t#DIV/0!\twords\t=B1*2\n\n\
        ## Old (hidden)\n\n1\n"
    );
}

#[test]
fn a_million_cells_are_read_or_refused_in_time() {
    let row = format!("<row>{}</row>", "<c><v>7</v></c>".repeat(1_000));
    let text = read(workbook(&row.repeat(1_000)), "cells.xlsx").unwrap().text;
    assert_eq!(text.matches('7').count(), 1_000_000);
    too_large(
        "far.xlsx",
        workbook(&"<row><c r=\"XFD1\"><v>7</v></c></row>".repeat(700)),
    );
    let empty = format!("<row r=\"1048576\">{}</row>", "<c s=\"1\"/>".repeat(10_000));
    let text = read(workbook(&empty.repeat(5)), "empty.xlsx").unwrap().text;
    assert!(text.len() < 100, "{text}");
}

#[test]
fn workbooks_that_unfold_lie_or_lack_parts() {
    too_large("bomb.xlsx", bomb(&parts("", "")[..3], "xl/sharedStrings.xml"));
    let mut unfolding = parts("", STRINGS);
    unfolding.remove(5);
    too_large("sheet bomb.xlsx", bomb(&unfolding, "xl/worksheets/sheet1.xml"));
    for number in ["2", "99999999999999999999", "-1", ""] {
        let cell = format!("<row><c t=\"s\"><v>{number}</v></c></row>");
        broken("strings.xlsx", workbook(&cell));
    }
    broken(
        "column.xlsx",
        workbook("<row><c r=\"ZZZZZZZZZZZZZZZZZZZZ1\"><v>1</v></c></row>"),
    );
    broken("main.xlsx", archive(&[("[Content_Types].xml", TYPES)]));
    broken("sheet.xlsx", archive(&unfolding));
    let lone: [(&str, &[u8]); 2] = [("[Content_Types].xml", TYPES), ("xl/workbook.xml", WORKBOOK.as_bytes())];
    broken("relations.xlsx", archive(&lone));
    broken("cut.xlsx", archive(&parts("<worksheet><row><c><v>1", STRINGS)));
    broken("deep.xlsx", archive(&parts(&"<a>".repeat(310_000), STRINGS)));
    let strings = format!("<si><t>{}</t></si>", "x".repeat(1_000_000));
    too_large(
        "strings.xlsx",
        archive(&parts("", &format!("<sst>{}</sst>", strings.repeat(11)))),
    );
    // One long text in every cell.
    let long = format!("<sst><si><t>{}</t></si></sst>", "x".repeat(1_000_000));
    let cells = format!("<row>{}</row>", "<c t=\"s\"><v>0</v></c>".repeat(11));
    too_large("same.xlsx", archive(&parts(&cells, &long)));
    let binary = b"<Types><Override ContentType=\"application/vnd.ms-excel.sheet.binary.macroEnabled.main\"/></Types>";
    let error = refusal("binary.xlsx", archive(&[("[Content_Types].xml", binary)]));
    assert!(matches!(error, Error::UnknownKind { .. }), "{error}");
}
