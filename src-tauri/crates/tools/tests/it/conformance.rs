//! The Model Context Protocol's own suite for clients, in two releases: each scenario passes, or fails for a reason that is
//! known.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::example;

/// The suite of 2025-11-25.
const BEFORE: &str = "conformance-2025-11-25";

/// The suite of 2026-07-28.
const NEWEST: &str = "conformance-2026-07-28";

/// Scenarios that fail, and why.
const FAILED: [(&str, &str); 8] = [
    (
        "auth/basic-cimd",
        "warns that Ponder has no page on the web that describes it as a client",
    ),
    (
        "auth/client-credentials-jwt",
        "signs in without a person, which Ponder does not",
    ),
    (
        "auth/client-credentials-basic",
        "signs in without a person, which Ponder does not",
    ),
    (
        "auth/cross-app-access-complete-flow",
        "signs in without a person, which Ponder does not",
    ),
    (
        "auth/enterprise-managed-authorization",
        "signs in without a person, which Ponder does not",
    ),
    (
        "auth/wif-jwt-bearer",
        "signs in without a person, which Ponder does not",
    ),
    ("auth/dpop", "an extension that Ponder does not know"),
    ("auth/dpop-nonce", "an extension that Ponder does not know"),
];

/// Scenarios that fail in the older suite alone, and why.
const FAILED_BEFORE: [(&str, &str); 1] = [(
    "auth/2025-03-26-oauth-metadata-backcompat",
    "its server is not the issuer that it names (RFC 8414, 3.3), which the newest suite mended",
)];

/// The scenarios of both suites.
const SCENARIOS: [&str; 25] = [
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
    "auth/2025-03-26-oauth-metadata-backcompat",
    "auth/2025-03-26-oauth-endpoint-fallback",
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
    "auth/client-credentials-jwt",
    "auth/client-credentials-basic",
];

/// The scenarios of the older one alone.
const OLDER: [&str; 1] = ["auth/cross-app-access-complete-flow"];

/// The scenarios of the newest one alone.
const NEWER: [&str; 23] = [
    "request-metadata",
    "auth/authorization-server-migration",
    "auth/iss-supported",
    "auth/iss-not-advertised",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
    "auth/enterprise-managed-authorization",
    "auth/dpop",
    "auth/dpop-nonce",
    "auth/wif-jwt-bearer",
    "sep-2322-client-request-state",
    "http-standard-headers",
    "http-custom-headers",
    "http-invalid-tool-headers",
    "json-schema-ref-no-deref",
    "json-schema-2020-12-preservation",
    "sep-2640-client-no-prefetch",
    "sep-2640-client-verify-digest",
    "sep-2640-client-verify-size",
    "sep-2640-client-verify-frontmatter",
];

/// `PONDER_MCP_CONFORMANCE` names the folder in which both are installed.
fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("PONDER_MCP_CONFORMANCE");
    if folder.is_none() {
        println!("report: the conformance suite of MCP is not here, so no scenario was tried");
    }
    folder.map(PathBuf::from)
}

fn run(folder: &Path, suite: &str, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(folder.join("node_modules/node/bin/node"))
        .arg(folder.join("node_modules").join(suite).join("dist/index.js"))
        .args(arguments)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// The scenarios that a suite lists for clients.
fn listed(folder: &Path, suite: &str) -> Vec<String> {
    let (_, text) = run(folder, suite, &["list", "--client"]);
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("- "));
    names
        .map(|line| line.split(' ').next().unwrap_or_default().to_owned())
        .collect()
}

fn tried(suite: &str, expected: &[&str], failed: &[(&str, &str)]) {
    let Some(folder) = folder() else { return };
    let mut names: Vec<String> = expected.iter().map(|name| (*name).to_owned()).collect();
    let mut all = listed(&folder, suite);
    names.sort();
    all.sort();
    assert_eq!(all, names, "the scenarios of {suite}");
    let client = example("conformance_client").display().to_string();
    let failed: BTreeMap<&str, &str> = failed.iter().copied().collect();
    let mut wrong = Vec::new();
    for name in &names {
        let (passed, said) = run(&folder, suite, &["client", "--command", &client, "--scenario", name]);
        let known = failed.get(name.as_str());
        let word = if passed { "passed" } else { "failed" };
        println!(
            "report: {suite}: {name}: {word}{}",
            known.map_or(String::new(), |why| format!(", {why}"))
        );
        if passed == known.is_some() {
            let end: String = said.chars().rev().take(3000).collect();
            wrong.push(format!("{name} {word}:\n{}", end.chars().rev().collect::<String>()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_scenario_of_2025_11_25_passes_or_fails_for_a_known_reason() {
    let failed = [&FAILED[..], &FAILED_BEFORE[..]].concat();
    tried(BEFORE, &[&SCENARIOS[..], &OLDER[..]].concat(), &failed);
}

#[test]
fn every_scenario_of_2026_07_28_passes_or_fails_for_a_known_reason() {
    tried(NEWEST, &[&SCENARIOS[..], &NEWER[..]].concat(), &FAILED);
}
