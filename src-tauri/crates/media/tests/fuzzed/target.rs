//! A drawing of any bytes: an image or an error, in time and without a panic. tests/fuzz has the same for cargo-fuzz.

#[path = "../../../../../tests/fuzz/words.rs"]
mod words;

const WORDS: &[&str] = &[
    "<g>",
    "</g>",
    "<g id=\"a\">",
    "<g id=\"b\">",
    "<defs>",
    "</defs>",
    "<rect width=\"9\" height=\"9\"/>",
    "<use href=\"#a\"/>",
    "<use xlink:href=\" #b \"/>",
    "<mask id=\"m\">",
    "</mask>",
    "<g mask=\"url(&#9;#m)\">",
    "<clipPath id=\"c\">",
    "</clipPath>",
    "<g clip-path=\"url(#c)\">",
    "<pattern id=\"p\" width=\"1\" height=\"1\">",
    "</pattern>",
    "<rect fill=\"url( #p )\" width=\"9\" height=\"9\"/>",
    "<filter id=\"f\">",
    "</filter>",
    "<feGaussianBlur stdDeviation=\"9\"/>",
    "<feImage href=\"#a\"/>",
    "<g filter=\"url('#f')\">",
    "<symbol id=\"s\">",
    "</symbol>",
    "<svg>",
    "</svg>",
    "<style>",
    "</style>",
    "*{mask:url(#m)}",
    "<text>a</text>",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<path d=\"M0 0L9 9\" stroke=\"red\" stroke-dasharray=\"1e-5\"/>",
    "<marker id=\"k\">",
    "</marker>",
    "<path d=\"M0 0L9 9\" marker-start=\"url(#k)\"/>",
    "<linearGradient id=\"l\" href=\"#l\">",
    "</linearGradient>",
    "<switch>",
    "</switch>",
    "<image href=\"#a\"/>",
    "<g transform=\"scale(1e9)\">",
    "<g opacity=\".5\">",
    "&#35;",
    "<",
    ">",
    "\"",
    "a",
    " ",
];
const HEAD: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" width=\"20\" height=\"20\">";

/// One drawing, whole and as it is.
pub fn run(data: &[u8]) {
    let inside = words::spelled(data, WORDS);
    for file in [
        [HEAD.as_bytes(), &inside, b"</svg>"].concat(),
        [HEAD.as_bytes(), &inside].concat(),
    ] {
        let measured = media::measure(&file);
        if let Ok(image) = media::decode(&file) {
            assert_eq!(image.rgb.len(), image.width as usize * image.height as usize * 3);
            assert!(measured.is_ok());
        }
    }
}
