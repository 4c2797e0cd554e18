import { amounts } from './amounts';
import { answer } from './answer';
import { app } from './app';
import { chat } from './chat';
import { chatSettings } from './chatSettings';
import { chatTools } from './chatTools';
import { composer } from './composer';
import { consent } from './consent';
import { data } from './data';
import { desktop } from './desktop';
import { documents } from './documents';
import { downloads } from './downloads';
import { endpoints } from './endpoints';
import { engine } from './engine';
import { errors } from './errors';
import { files } from './files';
import { firstModels } from './firstModels';
import { host } from './host';
import { images } from './images';
import { library } from './library';
import { message } from './message';
import { models } from './models';
import { network } from './network';
import { notes } from './notes';
import { preview } from './preview';
import { reading } from './reading';
import { server } from './server';
import { settings } from './settings';
import { sidebar } from './sidebar';
import { thinking } from './thinking';
import { toolServers } from './toolServers';
import { update } from './update';
import { translation } from '../en/catalogue';

/** The Arabic texts, in Modern Standard Arabic. */
export const ar = translation({
  ...amounts,
  ...answer,
  ...app,
  ...chat,
  ...chatSettings,
  ...chatTools,
  ...composer,
  ...consent,
  ...data,
  ...desktop,
  ...documents,
  ...downloads,
  ...endpoints,
  ...engine,
  ...errors,
  ...files,
  ...firstModels,
  ...host,
  ...images,
  ...library,
  ...message,
  ...models,
  ...network,
  ...notes,
  ...preview,
  ...reading,
  ...server,
  ...settings,
  ...sidebar,
  ...thinking,
  ...toolServers,
  ...update,
});
