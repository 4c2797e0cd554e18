//! File names for code blocks of an answer, by the language tag of the block as highlighters know it.

/// Extensions of languages whose tag differs from it.
const ENDINGS: &str = "
    assembly=s bash=sh batch=bat c#=cs c++=cpp clojure=clj coffeescript=coffee console=sh csharp=cs
    dockerfile=dockerfile elixir=ex elm=elm erlang=erl f#=fs fish=fish fortran=f90 fsharp=fs golang=go
    graphql=graphql haskell=hs javascript=js jsonc=json jsonl=jsonl julia=jl kotlin=kt latex=tex makefile=mk
    markdown=md matlab=m mermaid=mmd nix=nix objective-c=m ocaml=ml pascal=pas perl=pl plaintext=txt
    powershell=ps1 protobuf=proto python=py python3=py racket=rkt ruby=rb rust=rs scala=scala scheme=scm
    scss=scss shell=sh solidity=sol svelte=svelte swift=swift terraform=tf typescript=ts verilog=v vhdl=vhd
    visualbasic=vb xhtml=html yaml=yml zsh=sh
";

/// Languages whose tag is their file extension.
const OWN: &str = "
    asm bat c cc clj cpp cs css csv dart diff go h hpp hs html ini java js json jsx kt lua md mjs patch php pl
    ps1 py r rb rs sh sql svg tex toml ts tsx vue xml yml zig
";

/// The suggested file name; it contains nothing that a model wrote.
pub fn name(language: &str) -> String {
    let language = language.to_lowercase();
    let own = OWN.split_whitespace().find(|own| *own == language);
    let differs = |pair: &'static str| pair.split_once('=').filter(|(named, _)| *named == language);
    let ending = own.or_else(|| ENDINGS.split_whitespace().find_map(differs).map(|(_, ending)| ending));
    format!("code.{}", ending.unwrap_or("txt"))
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn a_file_is_called_by_its_language_and_by_nothing_else() {
        for (language, file) in [
            ("rust", "code.rs"),
            ("Python", "code.py"),
            ("ts", "code.ts"),
            ("c++", "code.cpp"),
            ("vue", "code.vue"),
            ("", "code.txt"),
            ("exe", "code.txt"),
            ("../../.bashrc", "code.txt"),
        ] {
            assert_eq!(name(language), file, "{language}");
        }
    }
}
