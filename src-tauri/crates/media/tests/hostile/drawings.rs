//! Drawings that unfold to more than anybody draws, and honest ones beside them.

use crate::Wanted::{self, Refused, Shown};

pub fn svg(inside: &str) -> Vec<u8> {
    format!(r#"<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="80" height="60">{inside}</svg>"#)
        .into_bytes()
}

/// Each line uses the one before ten times.
pub fn doubling(depth: usize) -> String {
    let uses = |level: usize| format!(r##"<use href="#g{level}"/>"##).repeat(10);
    let levels: String = (1..depth)
        .map(|level| format!(r#"<g id="g{level}">{}</g>"#, uses(level - 1)))
        .collect();
    format!(
        r#"<defs><g id="g0"><rect width="9" height="9"/></g>{levels}</defs>{}"#,
        uses(depth - 1)
    )
}

/// Masks, each with two groups that the next one masks, in these words; the first masks the drawing.
fn masks(refer: impl Fn(usize) -> String) -> Vec<u8> {
    let masked = |level: usize| format!(r#"<g {}><rect width="9" height="9" fill="white"/></g>"#, refer(level));
    let levels: String = (1..40)
        .map(|level| format!(r#"<mask id="m{level}">{}</mask>"#, masked(level + 1).repeat(2)))
        .collect();
    let last = r#"<mask id="m40"><rect width="9" height="9" fill="white"/></mask>"#;
    svg(&format!("{levels}{last}{}", masked(1)))
}

/// Drawings of some kB that unfold to more than anybody draws, each in words that are easily read otherwise.
pub fn small_bombs() -> Vec<(&'static str, Vec<u8>, Wanted)> {
    let heavy = doubling(4);
    let thousand = format!(
        r#"{heavy}<pattern id="p" width="9" height="9">{}</pattern>"#,
        r##"<use href="#g3"/>"##
    );
    let shapes = r#"<rect width="5" height="5"/>"#.repeat(100);
    let spiral = format!("M0 0{}", "h1v1".repeat(1000));
    let dots = r##"<marker id="k"><use href="#g3"/></marker>"##;
    vec![
        (
            "masks after a tab",
            masks(|next| format!(r#"mask="url(&#9;#m{next})""#)),
            Refused,
        ),
        (
            "masks after a line",
            masks(|next| format!(r#"mask="url(&#10;&#13; '#m{next} ' )""#)),
            Refused,
        ),
        (
            "masks in a style",
            masks(|next| format!(r#"style="mask:url( &quot;#m{next}&quot; )""#)),
            Refused,
        ),
        (
            "masks of a style sheet with comments",
            {
                let rules: String = (1..=40)
                    .map(|level| format!(".c{level}/**/{{mask:url(#m{level})}}"))
                    .collect();
                let drawing = masks(|next| format!(r#"class="c{next}""#));
                let text = String::from_utf8(drawing).expect("a text");
                text.replace("<mask id=\"m1\">", &format!("<style>{rules}</style><mask id=\"m1\">"))
                    .into_bytes()
            },
            Refused,
        ),
        (
            "masks whose names something harmless has, too",
            {
                let text = String::from_utf8(masks(|next| format!(r#"mask="url(#m{next})""#))).expect("a text");
                let harmless: String = (1..=40).map(|level| format!(r#"<g id="m{level}"/>"#)).collect();
                text.replace("<mask id=\"m1\">", &format!("{harmless}<mask id=\"m1\">"))
                    .into_bytes()
            },
            Refused,
        ),
        (
            "uses with a space before their names",
            svg(&doubling(9).replace("href=\"#", "href=\" #")),
            Refused,
        ),
        (
            "uses with a space after their names",
            svg(&doubling(9)
                .replace("\"/></g>", " \"/></g>")
                .replace("\"/><use", " \"/><use")),
            Refused,
        ),
        (
            "a pattern that a hundred shapes inherit",
            svg(&format!("{thousand}<g fill=\"url(#p)\">{}</g>", shapes.repeat(3))),
            Refused,
        ),
        (
            "a marker at two thousand points",
            svg(&format!(
                r##"{heavy}{dots}<g style="marker:url(#k)"><path d="{spiral}" stroke="red"/></g>"##
            )),
            Refused,
        ),
        (
            "a chart with a marker at each point",
            svg(&format!(
                r##"<marker id="k"><circle r="1"/></marker><path d="{spiral}" stroke="red" marker-mid="url(#k)"/>"##
            )),
            Shown,
        ),
        (
            "a gradient that a hundred shapes inherit",
            svg(&format!(
                r##"<linearGradient id="a"><stop/><stop offset="1"/></linearGradient><g fill="url(#a)">{shapes}</g>"##
            )),
            Shown,
        ),
        (
            "a link to what is around it",
            svg(r##"<g id="top"><a href="#top"><rect width="9" height="9"/></a></g>"##),
            Shown,
        ),
    ]
}
