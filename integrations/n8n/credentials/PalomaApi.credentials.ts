import type {
  IAuthenticateGeneric,
  Icon,
  ICredentialTestRequest,
  ICredentialType,
  INodeProperties,
} from "n8n-workflow";

export class PalomaApi implements ICredentialType {
  name = "palomaApi";

  displayName = "Paloma API";

  icon: Icon = { light: "file:../icons/paloma.svg", dark: "file:../icons/paloma.dark.svg" };

  documentationUrl = "https://paloma.example/docs/guides/n8n#credentials";

  properties: INodeProperties[] = [
    {
      displayName: "Base URL",
      name: "baseUrl",
      type: "string",
      default: "",
      required: true,
      placeholder: "https://gateway.example.com",
      description: "Where the gateway answers, without /v1",
    },
    {
      displayName: "API Key",
      name: "apiKey",
      type: "string",
      typeOptions: { password: true },
      default: "",
      required: true,
      description:
        "A key with the scopes read and send; the trigger, Send and Wait, Mark Read and Check Number need manage as well",
    },
  ];

  authenticate: IAuthenticateGeneric = {
    type: "generic",
    properties: { headers: { "x-api-key": "={{$credentials.apiKey}}" } },
  };

  test: ICredentialTestRequest = {
    request: { baseURL: '={{$credentials.baseUrl.replace(/\\/+$/, "")}}', url: "/v1/account" },
  };
}
