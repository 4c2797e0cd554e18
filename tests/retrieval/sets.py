"""Sets of passages and questions that people wrote, of which public packages carry both.

A question is a heading of a FAQ, the line of a manual page that says what it is for, or a tag that somebody put on
papers. The heading or line itself is taken out of what is searched, of every section alike, so that an answer is found
by what it says. Packages of Debian are those of the release that this runs on; `fetch` gets them."""
import gzip
import json
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

# Translations of the Debian FAQ that are nearly whole.
LANGUAGES = ["de", "fr", "it", "nl", "pt", "ru", "ja", "ko", "zh-cn"]
TRANSLATED = [f"debian-faq-{code}" for code in LANGUAGES]
DEBIAN = ["perl-doc", "python3-doc", "manpages-dev", "debian-faq", *TRANSLATED]
# Words of a passage, as many as a model of 256 tokens reads.
WORDS = 150
# Tags on more papers say nothing of what a paper is about.
PAPERS = 30


@dataclass
class Passage:
    file: str
    headings: str
    text: str


@dataclass
class Set:
    name: str
    passages: list = field(default_factory=list)
    # Texts, each with the places of the passages that answer it.
    questions: list = field(default_factory=list)

    def add(self, file, headings, text, question=None):
        """A section in passages, which answer the question."""
        pieces = cut(text)
        first = len(self.passages)
        self.passages += [Passage(file, " › ".join(headings), piece) for piece in pieces]
        if question and pieces:
            self.questions.append((question, set(range(first, first + len(pieces)))))


def cut(text):
    """Paragraphs, put together up to `WORDS`; one that is longer is cut between words."""
    pieces, open_words = [], 0
    for paragraph in filter(None, (part.strip() for part in re.split(r"\n\s*\n", text))):
        words = paragraph.split()
        # Scripts without spaces have no words to count; eight signs stand for one.
        count = max(len(words), len(paragraph) // 8)
        if count > WORDS and len(words) > WORDS:
            pieces += [" ".join(words[at : at + WORDS]) for at in range(0, len(words), WORDS)]
            open_words = WORDS
        elif pieces and open_words + count <= WORDS:
            pieces[-1] += "\n\n" + paragraph
            open_words += count
        else:
            pieces.append(paragraph)
            open_words = count
    return pieces


def fetch(folder):
    """Packages of Debian, unpacked; returns their versions."""
    folder.mkdir(parents=True, exist_ok=True)
    # The package with this name only depends on the documents of a version.
    depends = subprocess.check_output(["apt-cache", "depends", "python3-doc"], text=True)
    python = re.search(r"Depends: (python3\.\d+-doc)", depends)[1]
    versions = []
    for package in [python if name == "python3-doc" else name for name in DEBIAN]:
        if not (found := list(folder.glob(f"{package}_*.deb"))):
            download = ["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", package]
            subprocess.run(download, cwd=folder, check=True)
            found = list(folder.glob(f"{package}_*.deb"))
            subprocess.run(["dpkg-deb", "-x", found[0], folder / "root"], check=True)
        versions.append(" ".join(found[0].stem.split("_")[:2]))
    return versions


def perl(root):
    """The Perl FAQ, of perl-doc (Artistic license or GPL)."""
    made = Set("Perl FAQ")
    for file in sorted(root.glob("usr/share/perl/5*/pod/perlfaq[1-9].pod")):
        plain = file.read_text("latin-1")
        for _ in range(3):
            plain = re.sub(r"[BCFIXZ]<<? ?([^<>]*?) ?>?>", r"\1", plain)
            plain = re.sub(r"L<(?:[^<>|]*\|)?([^<>|]*)>", r"\1", plain)
        plain = plain.replace("E<gt>", ">").replace("E<lt>", "<")
        chapter = ""
        for part in re.split(r"^(?==head[12] )", plain, flags=re.M):
            title, _, text = part.partition("\n\n")
            title = " ".join(title.split())
            text = re.sub(r"^=.*$", "", text, flags=re.M)
            if title.startswith("=head1 "):
                chapter = title[7:]
            elif title.startswith("=head2 "):
                made.add(file.name, [chapter], text, title[7:])
    return made


def python(root):
    """The Python FAQ among the tutorial and the HOWTOs, of python3-doc (PSF license)."""
    made = Set("Python FAQ")
    for folder in ("faq", "tutorial", "howto"):
        # A second folder is a link to the first.
        found = root.glob(f"usr/share/doc/python3.*/html/_sources/{folder}/*.rst.txt")
        for file in sorted({file.resolve() for file in found}):
            plain = re.sub(r":[a-z:]+:`~?!?([^`<]*?)(?: <[^`]*>)?`|`([^`<]*?) <[^`]*>`_+", r"\1\2", file.read_text())
            plain = re.sub(r"^\.\. (?:_|only|contents|index).*$|^:tocdepth:.*$|^=+\n(?=.*\n=+$)", "", plain, flags=re.M)
            parts = re.split(r"^(\S.*)\n([=\-~^*#+'\"])\2{2,}$\n", plain, flags=re.M)
            signs, path = [], []
            for title, sign, text in zip(parts[1::3], parts[2::3], parts[3::3]):
                signs = signs if sign in signs else [*signs, sign]
                path = path[: signs.index(sign)]
                made.add(file.name, path, text, title if folder == "faq" and title.endswith("?") else None)
                path = [*path, title]
    return made


def debian(root, language="en"):
    """The Debian FAQ (GPL)."""
    made = Set("Debian FAQ" if language == "en" else f"Debian FAQ, {language}")
    [file] = root.glob(f"usr/share/doc/debian/FAQ/**/debian-faq.{language}.txt.gz")
    chapter, title, text = "", "", []

    def close():
        if title:
            made.add(file.name, [chapter], "\n".join(text), title if re.search(r"[?？]", title) else None)

    lines = iter(gzip.open(file, "rt", encoding="utf-8").read().replace("\xa0", " ").splitlines())
    for line in lines:
        if re.match(r"\d+\.\d+\. ", line):
            close()
            title, text = line.split(" ", 1)[1], []
            while (more := next(lines, "")).strip():
                title += " " + more.strip()
        elif re.match(r"\S", line) and re.search(r"\d", line[:12]) and not re.match(r"\d", line):
            close()
            chapter, title = line, ""
        else:
            text.append(line)
    close()
    return made


def manual(root):
    """System calls and functions of C by what they are for, of manpages-dev (several free licenses)."""
    made = Set("manual pages")
    answers = {}
    # Other names of a page are links to it.
    for file in sorted(file for file in root.glob("usr/share/man/man[23]/*.gz") if not file.is_symlink()):
        roff = gzip.open(file, "rt", encoding="utf-8", errors="replace").read()
        sections = dict(re.findall(r"^\.SH \"?([A-Z ]+)\"?\n(.*?)(?=^\.SH|\Z)", roff, flags=re.M | re.S))
        names, dash, purpose = plain_roff(sections.get("NAME", "")).partition(" - ")
        pieces = cut(plain_roff(sections.get("DESCRIPTION", "")))
        if dash and pieces:
            answers.setdefault(" ".join(purpose.split()), set()).add(len(made.passages))
            made.passages.append(Passage(file.name.removesuffix(".gz"), names.strip(), pieces[0]))
    made.questions = list(answers.items())
    return made


def plain_roff(roff):
    lines = []
    for line in roff.splitlines():
        if re.match(r"[.']\s*(PP|P|TP|IP|sp)\b|^$", line):
            lines.append("")
        elif found := re.match(r"\.([BIRSM]{1,2}) (.*)", line):
            # Two letters alternate fonts between words that belong together.
            words = re.findall(r'"[^"]*"|\S+', found[2])
            lines.append(("" if len(found[1]) == 2 else " ").join(word.strip('"') for word in words))
        elif not re.match(r"[.']", line):
            lines.append(line)
    text = re.sub(r"\\f[A-Z]|\\f\(..|\\&|\\[|^]|\\c", "", "\n".join(lines))
    text = text.replace("\\-", "-").replace("\\(aq", "'").replace("\\e", "\\").replace("\\~", " ")
    return re.sub(r"\\\((?:lq|rq|dq)", '"', text)


def papers(folder):
    """Papers of arXiv by the tags that a reader put on them, of the PyPI package cherche (MIT license)."""
    made = Set("tagged papers")
    tags = json.loads((folder / "semanlink/tags.json").read_text())
    tagged = {}
    for place, paper in enumerate(json.loads((folder / "semanlink/arxiv.json").read_text())):
        made.passages.append(Passage(f"{place}.pdf", paper["arxiv_title"], " ".join(paper["arxiv_summary"].split())))
        for tag in paper["tag"]:
            tagged.setdefault(tag, set()).add(place)
    labels = {tags[tag]["prefLabel"][0]: places for tag, places in tagged.items() if 2 <= len(places) <= PAPERS}
    made.questions = sorted(labels.items())
    return made


def sets(root, cherche):
    languages = [debian(root, code) for code in LANGUAGES]
    return [perl(root), python(root), debian(root), manual(root), papers(cherche)], languages
