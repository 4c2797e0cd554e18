import { tauri } from './tauri'; export const fakePlatform = () => tauri;
