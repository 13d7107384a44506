import type { IDataObject, ILoadOptionsFunctions, INodePropertyOptions } from "n8n-workflow";
import { call } from "./request";

/** The account's lines, to choose from. */
export async function getLines(this: ILoadOptionsFunctions): Promise<INodePropertyOptions[]> {
  const { body } = await call(this, { method: "GET", path: "/v1/sessions" });
  return (body.data as IDataObject[]).map(({ id, name, phone, status }) => ({
    name: `${String(name)} (${String(phone ?? status)})`,
    value: String(id),
  }));
}
