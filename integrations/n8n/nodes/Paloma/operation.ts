import type {
  IDataObject,
  IExecuteFunctions,
  INodeExecutionData,
  INodeProperties,
  INodePropertyOptions,
} from "n8n-workflow";
import { NodeOperationError, tryToParseDateTime } from "n8n-workflow";
import { type Call, call } from "../shared/request";

/** The parameters of one item. */
export class Item {
  constructor(readonly node: IExecuteFunctions, readonly index: number) {}

  text(name: string): string {
    return String(this.node.getNodeParameter(name, this.index, "")).trim();
  }

  /** The parameter as it is; undefined if nothing was entered. */
  value<T extends IDataObject[string] = string>(name: string): T | undefined {
    const value = this.node.getNodeParameter(name, this.index, "") as T;
    return value === "" ? undefined : value;
  }

  /** The entries of a fixed collection. */
  entries<T = IDataObject>(name: string): T[] {
    const { entry } = this.node.getNodeParameter(name, this.index, {}) as { entry?: T[] };
    return entry ?? [];
  }

  /** A parameter as part of a path. */
  segment(name: string): string {
    const text = this.text(name);
    if (!text) throw new NodeOperationError(this.node.getNode(), `"${name}" is empty`, { itemIndex: this.index });
    return encodeURIComponent(text);
  }

  /** A moment as the gateway takes it; what names no zone is in the workflow's. */
  moment(value: unknown): string {
    try {
      return tryToParseDateTime(value, this.node.getTimezone()).toUTC().toISO()!;
    } catch {
      const message = `"${String(value)}" is no date`;
      throw new NodeOperationError(this.node.getNode(), message, { itemIndex: this.index });
    }
  }
}

export interface Operation {
  /** What the operations menu shows. */
  option: INodePropertyOptions;
  fields: INodeProperties[];
  /** Works on one item; resolves to the items of the output. */
  run(item: Item): Promise<INodeExecutionData[]>;
}

export interface Resource {
  option: INodePropertyOptions;
  operations: Operation[];
}

/** Calls the gateway for an item; the `data` of the answer, or the whole of it, is the output. */
export async function ask(item: Item, request: Call): Promise<INodeExecutionData[]> {
  const { body } = await call(item.node, request, item.index);
  return output((body.data ?? body) as IDataObject | IDataObject[]);
}

export function output(data: IDataObject | IDataObject[]): INodeExecutionData[] {
  return [data].flat().map((json) => ({ json }));
}

/** The menus and fields of the resources, each field shown for its operation. */
export function properties(resources: Resource[]): INodeProperties[] {
  return resources.flatMap(({ option: { value: resource }, operations }) => [
    {
      displayName: "Operation",
      name: "operation",
      type: "options" as const,
      noDataExpression: true,
      displayOptions: { show: { resource: [resource] } },
      options: operations.map(({ option }) => option),
      default: operations[0].option.value,
    },
    ...operations.flatMap(({ option, fields }) =>
      fields.map((field): INodeProperties => ({
        ...field,
        displayOptions: {
          ...field.displayOptions,
          show: { ...field.displayOptions?.show, resource: [resource], operation: [option.value] },
        },
      }))
    ),
  ]);
}

/** A key that a repetition of the same item in the same run has too: a retry sends nothing twice. */
export function keyOf({ node, index }: Item): string {
  const run = String(node.evaluateExpression("{{ $runIndex }}", index));
  // A node that was not made in the editor may have any id.
  return `n8n-${node.getExecutionId()}-${encodeURIComponent(node.getNode().id)}-${run}-${index}`;
}
