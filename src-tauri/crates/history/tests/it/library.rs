//! The archive, the trash and projects.

use history::Error;

use crate::Fresh;

#[tokio::test]
async fn an_archived_chat_is_kept_found_and_taken_back() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    fresh.turn(&chat, "tea", "tea").await;
    fresh.history.archive_chat(&chat, true).await.unwrap();
    fresh.history.archive_chat(&chat, true).await.unwrap();
    assert!(fresh.history.chats().await.unwrap()[0].archived);
    assert_eq!(fresh.history.chat(&chat).await.unwrap().messages.len(), 2);
    let query = api::HistoryQuery::words("tea");
    assert_eq!(fresh.history.search(&query).await.unwrap().hits.len(), 3);
    fresh.history.archive_chat(&chat, false).await.unwrap();
    assert!(!fresh.history.chats().await.unwrap()[0].archived);
}

#[tokio::test]
async fn the_trash_can_be_looked_at_and_emptied_chat_by_chat() {
    let fresh = Fresh::new().await;
    let (first, second, kept) = (fresh.chat().await, fresh.chat().await, fresh.chat().await);
    let before = history::now();
    fresh.history.trash_chat(&first).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    fresh.history.trash_chat(&second).await.unwrap();
    let trash = fresh.history.trashed_chats().await.unwrap();
    assert_eq!(
        trash.iter().map(|(chat, _)| &chat.id).collect::<Vec<_>>(),
        [&second, &first]
    );
    assert!(trash.iter().all(|(_, at)| *at >= before && *at <= history::now()));
    assert!(matches!(
        fresh.history.purge_chat(&kept).await,
        Err(Error::NotFound("chat"))
    ));
    fresh.history.purge_chat(&second).await.unwrap();
    assert!(matches!(
        fresh.history.restore_chat(&second).await,
        Err(Error::NotFound("chat"))
    ));
    assert_eq!(fresh.history.restore_chat(&first).await.unwrap().id, first);
    assert!(fresh.history.trashed_chats().await.unwrap().is_empty());
}

#[tokio::test]
async fn all_chats_are_deleted_from_the_file_itself_and_the_rest_stays() {
    let fresh = Fresh::new().await;
    let (kept, trashed) = (fresh.chat().await, fresh.chat().await);
    fresh.turn(&kept, "a very secret word", "another").await;
    fresh.turn(&trashed, "a very secret word", "another").await;
    fresh.history.trash_chat(&trashed).await.unwrap();
    fresh.history.create_project("Thesis").await.unwrap();
    fresh
        .history
        .back_up(std::time::Duration::ZERO)
        .await
        .unwrap()
        .expect("a backup");
    assert_eq!(fresh.history.count_chats().await.unwrap(), 2);
    assert_eq!(fresh.history.delete_all_chats().await.unwrap(), 2);

    assert_eq!(fresh.history.count_chats().await.unwrap(), 0);
    assert_eq!(fresh.history.projects().await.unwrap().len(), 1);
    let query = api::HistoryQuery::words("secret");
    assert!(fresh.history.search(&query).await.unwrap().hits.is_empty());
    let bytes = |path: &std::path::Path| std::fs::read(path).unwrap_or_default();
    let holds = |bytes: Vec<u8>| bytes.windows(6).any(|window| window == b"secret");
    assert!(!holds(bytes(&fresh.path())), "not even in free pages");
    assert!(!holds(bytes(&fresh.path().with_extension("sqlite-wal"))));
    let [backup] = &history::backups(&fresh.path())[..] else {
        panic!("one backup")
    };
    assert!(holds(bytes(&backup.path)), "backups stay unless that is asked for");
    history::remove_backups(&fresh.path());
    assert!(history::backups(&fresh.path()).is_empty());
    let chat = fresh.chat().await;
    fresh.turn(&chat, "a new question", "answer").await;
}

#[tokio::test]
async fn a_deleted_project_leaves_its_chats_and_comes_back_with_them() {
    let fresh = Fresh::new().await;
    let (inside, outside) = (fresh.chat().await, fresh.chat().await);
    let project = fresh.history.create_project("Thesis").await.unwrap();
    fresh.history.create_project("archive").await.unwrap();
    fresh
        .history
        .change_project(&project.id, "Thesis 'x'", "Be brief.")
        .await
        .unwrap();
    let names: Vec<String> = fresh
        .history
        .projects()
        .await
        .unwrap()
        .into_iter()
        .map(|project| project.name)
        .collect();
    assert_eq!(names, ["archive", "Thesis 'x'"]);
    fresh.history.move_chat(&inside, Some(&project.id)).await.unwrap();
    let project_in = async |chat: &str| {
        let chats = fresh.history.chats().await.unwrap();
        chats.into_iter().find(|other| other.id == chat).unwrap().project
    };
    assert_eq!(project_in(&inside).await.as_deref(), Some(project.id.as_str()));
    assert_eq!(project_in(&outside).await, None);
    assert_eq!(
        fresh.history.project_of(&inside).await.unwrap().unwrap().system_prompt,
        "Be brief."
    );

    fresh.history.delete_project(&project.id).await.unwrap();
    assert_eq!(project_in(&inside).await, None);
    assert!(fresh.history.project_of(&inside).await.unwrap().is_none());
    assert!(matches!(
        fresh.history.move_chat(&outside, Some(&project.id)).await,
        Err(Error::NotFound("folder"))
    ));
    fresh.history.restore_project(&project.id).await.unwrap();
    assert_eq!(project_in(&inside).await.as_deref(), Some(project.id.as_str()));

    fresh.history.delete_project(&project.id).await.unwrap();
    fresh.history.purge_trash(history::now() + 1).await.unwrap();
    assert!(matches!(
        fresh.history.restore_project(&project.id).await,
        Err(Error::NotFound("folder"))
    ));
    assert_eq!(fresh.history.chats().await.unwrap().len(), 2);
}
