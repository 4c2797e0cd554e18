use super::*;

/// A PDF whose pages draw this.
fn pdf(pages: &[&str]) -> String {
    let kids: Vec<String> = (0..pages.len()).map(|page| format!("{} 0 R", 4 + 2 * page)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), pages.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
    ];
    for (page, draws) in pages.iter().enumerate() {
        let content = 5 + 2 * page;
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 400] /Resources << /Font << /F1 3 0 R >> >> \
             /Contents {content} 0 R >>"
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{draws}\nendstream", draws.len()));
    }
    let mut file = "%PDF-1.7\n".to_owned();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (index, object) in objects.iter().enumerate() {
        table.push_str(&format!("{:010} 00000 n \n", file.len()));
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", index + 1));
    }
    let start = file.len();
    format!(
        "{file}{table}trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n",
        objects.len() + 1
    )
}

#[tokio::test]
async fn a_page_of_a_cited_pdf_is_drawn_with_the_passage_on_it() {
    let world = World::new();
    let line = |words: &str| format!("BT /F1 12 Tf 20 350 Td ({words}) Tj ET");
    world.write(
        "a.pdf",
        pdf(&[&line("The ferry leaves at seven."), &line("The bakery is closed.")]),
    );
    world.write("b.txt", "The lighthouse is green.");
    let id = world.added().await;
    let (passages, _) = world.ask(&id, "bakery", 1000, &[]).await.unwrap();
    let bakery = passages.iter().find(|passage| passage.text.contains("bakery")).unwrap();
    assert_eq!(bakery.page, Some(2));
    let page = world.knowledge.page_image(bakery, 2, 300).await.unwrap();
    assert_eq!(
        (page.pages, page.width, page.height, page.marks.len()),
        (2, 300, 400, 1)
    );
    assert!(page.image.starts_with("data:image/png;base64,iVBORw0KGgo"));
    assert!(world
        .knowledge
        .page_image(bakery, 1, 300)
        .await
        .unwrap()
        .marks
        .is_empty());
    let missing = world.knowledge.page_image(bakery, 3, 300).await.unwrap_err();
    assert!(missing.to_string().contains("no page 3"), "{missing}");
    let mut other = bakery.clone();
    other.file = "b.txt".into();
    let without = world.knowledge.page_image(&other, 1, 300).await.unwrap_err();
    assert!(without.to_string().contains("not drawn"), "{without}");
    other.file = "../../etc/passwd".into();
    assert!(matches!(
        world.knowledge.page_image(&other, 1, 300).await,
        Err(Error::NotFound(_))
    ));
}
