//! The kind of a file, told by its contents; its name tells only which text is meant.

use memchr::memmem;

use crate::error::{Error, Result};
use crate::formats::mail::begins_as_message;
use crate::formats::text;
use crate::kind::{extension, DocumentKind};

const PLAIN: &str = "save it as PDF or text";

/// Files that are known and not read, by how they begin, and what to do about them.
const REFUSED: [(&[u8], &str, &str); 16] = [
    (
        b"\xd0\xcf\x11\xe0",
        "an Office file of before 2007",
        "save it as DOCX, PDF or text",
    ),
    (b"{\\rtf", "an RTF document", "save it as DOCX, PDF or text"),
    (b"\x89PNG", "an image", "add it as an image"),
    (b"\xff\xd8\xff", "an image", "add it as an image"),
    (b"GIF8", "an image", "add it as an image"),
    (b"RIFF", "a recording or an image", "add images as PNG or JPEG"),
    (b"\x1f\x8b", "a compressed file", "unpack it first"),
    (b"7z\xbc\xaf", "an archive", "unpack it first"),
    (b"Rar!", "an archive", "unpack it first"),
    (b"BZh", "a compressed file", "unpack it first"),
    (b"\xfd7zXZ", "a compressed file", "unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a compressed file", "unpack it first"),
    (b"\x7fELF", "a program", PLAIN),
    (b"MZ", "a program", PLAIN),
    (b"SQLite format 3", "a database", "export it as CSV"),
    (b"ID3", "a recording", "add its words as text"),
];

/// The name of the part of such a file with the document: `EncryptedPackage`, as the file spells it.
const LOCKED: &[u8] = b"E\0n\0c\0r\0y\0p\0t\0e\0d\0P\0a\0c\0k\0a\0g\0e\0";

/// How far the beginning of a PDF may lie from the beginning of its file.
const PDF_PROLOGUE: usize = 1024;

/// The kind of a file. That of an archive is a guess for messages until it was opened, which the reader does.
pub(crate) fn kind_of(bytes: &[u8], name: &str) -> Result<DocumentKind> {
    if bytes.is_empty() {
        return Err(Error::UnknownKind {
            what: "an empty file".into(),
            advice: "add another one".into(),
        });
    }
    let prologue = &bytes[..bytes.len().min(PDF_PROLOGUE)];
    if memmem::find(prologue, b"%PDF-").is_some_and(|at| at == 0 || !speaks_of_pdf(bytes, name)) {
        return Ok(DocumentKind::Pdf);
    }
    if bytes.starts_with(b"PK\x03\x04") {
        return Ok(guessed(name));
    }
    // Office packs a document with a password into a file of its older form.
    if bytes.starts_with(b"\xd0\xcf\x11\xe0") && memmem::find(bytes, LOCKED).is_some() {
        return Err(Error::Protected("Office".into()));
    }
    if let Some((_, what, advice)) = REFUSED.iter().find(|(start, ..)| bytes.starts_with(start)) {
        // A text may begin with these letters as well as a program.
        let letters = matches!(
            *what,
            "a program" | "a recording" | "a recording or an image" | "a compressed file"
        );
        if !letters || !text::is_text(bytes) {
            return Err(Error::UnknownKind {
                what: (*what).into(),
                advice: (*advice).into(),
            });
        }
    }
    if !text::is_text(bytes) {
        return Err(Error::UnknownKind {
            what: "this kind of file".into(),
            advice: PLAIN.into(),
        });
    }
    Ok(kind_of_text(bytes, name))
}

/// True for a text that names the beginning of a PDF, as source code that writes one does.
fn speaks_of_pdf(bytes: &[u8], name: &str) -> bool {
    extension(name).is_some_and(|extension| extension != "pdf") && text::is_text(bytes)
}

/// The kind that the name of an archive promises.
fn guessed(name: &str) -> DocumentKind {
    match extension(name).as_deref() {
        Some("xlsx" | "xlsm" | "xltx" | "xltm") => DocumentKind::Xlsx,
        Some("pptx" | "pptm" | "ppsx" | "ppsm" | "potx" | "potm") => DocumentKind::Pptx,
        Some("odt" | "ott") => DocumentKind::Odt,
        Some("ods" | "ots") => DocumentKind::Ods,
        Some("odp" | "otp") => DocumentKind::Odp,
        Some("epub") => DocumentKind::Epub,
        _ => DocumentKind::Docx,
    }
}

fn kind_of_text(bytes: &[u8], name: &str) -> DocumentKind {
    match extension(name).as_deref() {
        Some("md" | "markdown" | "mdown" | "mkd") => DocumentKind::Markdown,
        Some("csv" | "tsv") => DocumentKind::Csv,
        Some("html" | "htm" | "xhtml" | "xht") => DocumentKind::Html,
        Some("eml" | "mht" | "mhtml") if begins_as_message(bytes) => DocumentKind::Mail,
        None if begins_as_page(bytes) => DocumentKind::Html,
        _ => DocumentKind::Text,
    }
}

fn begins_as_page(bytes: &[u8]) -> bool {
    let start: Vec<u8> = bytes.iter().take(512).map(u8::to_ascii_lowercase).collect();
    let start = start.trim_ascii_start();
    start.starts_with(b"<!doctype html") || start.starts_with(b"<html")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_decide_and_names_tell_texts_apart() {
        let kinds: [(&[u8], &str, DocumentKind); 9] = [
            (b"# a", "a.md", DocumentKind::Markdown),
            (b"a,b", "A.CSV", DocumentKind::Csv),
            (b"<p>a", "a.htm", DocumentKind::Html),
            (b" <!DOCTYPE html><p>a", "", DocumentKind::Html),
            (b"<html>", "component.vue", DocumentKind::Text),
            (b"fn main() {}", "main.rs", DocumentKind::Text),
            (b"%PDF-1.7", "letter.txt", DocumentKind::Pdf),
            (b"PK\x03\x04", "letter.txt", DocumentKind::Docx),
            (b"MZ is a label of trains", "a.txt", DocumentKind::Text),
        ];
        for (bytes, name, kind) in kinds {
            assert_eq!(kind_of(bytes, name), Ok(kind), "{name:?}");
        }
    }

    #[test]
    fn sources_of_every_language_are_texts() {
        let names = "main.rs a.go a.swift a.kt a.kts a.scala a.rb a.php a.lua a.zig a.hs a.ml a.mli a.ex a.exs a.erl \
            a.hrl a.clj a.cljs a.jl a.r a.R a.m a.mm a.c a.h a.cc a.cpp a.hpp a.cs a.fs a.vb a.java a.groovy \
            a.dart a.py a.pyi a.pl a.pm a.js a.mjs a.jsx a.ts a.tsx a.vue a.svelte a.css a.scss a.sql a.sh \
            a.bash a.zsh a.fish a.ps1 a.bat a.proto a.graphql a.tf a.hcl a.nix a.toml a.yaml a.yml a.json \
            a.jsonl a.ini a.cfg a.conf a.env a.properties a.xml a.tex a.bib a.rst a.adoc a.org a.ipynb \
            a.diff a.patch a.log a.srt a.vtt a.cmake a.gradle a.asm a.s a.f90 a.pas a.ada a.lisp a.el a.scm \
            a.rkt a.v a.sv a.vhd a.sol a.cu a.metal a.wgsl a.glsl Makefile Dockerfile .gitignore LICENSE";
        let source = b"<html> MZ {\n\x0c\tlet page = \"%PDF-1.7 \xc3\xa9\"; // From: Subject:\n}\n";
        for name in names
            .split_whitespace()
            .filter(|name| name.contains('.') && !name.starts_with('.'))
        {
            assert_eq!(kind_of(source, name), Ok(DocumentKind::Text), "{name}");
        }
        for name in names.split_whitespace() {
            assert_eq!(
                kind_of(b"all:\n\techo 'From: a'\n", name),
                Ok(DocumentKind::Text),
                "{name}"
            );
        }
    }

    #[test]
    fn names_of_archives_are_a_guess_for_messages() {
        for (name, kind) in [
            ("a.EPUB", DocumentKind::Epub),
            ("a.xlsm", DocumentKind::Xlsx),
            ("a.potx", DocumentKind::Pptx),
            ("a.ods", DocumentKind::Ods),
            ("a", DocumentKind::Docx),
        ] {
            assert_eq!(kind_of(b"PK\x03\x04", name), Ok(kind), "{name}");
        }
    }
}
